"""What git is asked and what its answers mean, rule by rule: names, clones, histories, index and HEAD."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import fake_project
import pytest

from cartlab import sources
from cartlab.errors import BadInput, BadRef
from cartlab.sources import git


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


def refusal(repo: Path, text: str) -> BadRef:
    with pytest.raises(BadRef) as refused:
        sources.resolve(repo, text)
    return refused.value


def stored(project: fake_project.Project, content: str) -> str:
    """The id of a blob that the repository now has; it ends without a line feed."""
    project.write("blob", content)
    return project.git("hash-object", "-w", "blob")


def test_the_package_has_no_more_names_than_it_says() -> None:
    assert all(hasattr(sources, name) for name in sources.__all__)
    with pytest.raises(AttributeError, match=r"'cartlab\.sources' has no attribute 'nothing'"):
        sources.nothing  # noqa: B018


# --- names


def test_the_text_of_a_refused_name_is_told_whole_up_to_a_screenful(project: fake_project.Project) -> None:
    told = "a ref must be a branch, tag, commit or an expression such as HEAD~3; found "
    for text in ("-x", "-" + 999 * "x", "tab\there", "no\0thing"):
        assert refusal(project.path, text).message == told + repr(text)
    assert refusal(project.path, "-" + 1000 * "x").message == f"{told}'-{39 * 'x'}' and 961 characters more"


def test_a_space_is_no_fault_of_its_own(project: fake_project.Project) -> None:
    project.commit("two words")
    assert sources.resolve(project.path, "HEAD^{/two words}").commit == project.git("rev-parse", "HEAD")
    assert "no branch, tag or commit of that name" in refusal(project.path, "two words").message


def test_a_tag_of_no_commit_is_told_by_what_it_names(project: fake_project.Project) -> None:
    for name, of in (("of-a-tree", "HEAD^{tree}"), ("of-a-blob", "HEAD:README")):
        project.git("tag", "-a", "-m", "annotated", name, of)
        project.git("tag", "-a", "-m", "of the tag", f"again-{name}", name)
        for tag in (name, f"again-{name}"):
            assert refusal(project.path, tag).message.endswith(f"it names a {name[5:]}")


def test_short_ids_of_several_objects_are_told_apart_from_those_of_none(
    project: fake_project.Project,
) -> None:
    first: dict[str, str] = {}
    for number in itertools.count():
        short = hashlib.sha1(f"blob {len(str(number))}\0{number}".encode()).hexdigest()[:4]
        if short in first:
            break
        first[short] = str(number)
    both = {stored(project, first[short]), stored(project, str(number))}
    refused = refusal(project.path, short)
    assert refused.message.startswith(f"{short!r} must name one commit; 2 objects begin with it: ")
    assert all(name[:12] in refused.message for name in both)
    assert refused.hint == "add digits"
    refused = refusal(project.path, "f" * 40)
    assert "no object of that id is in this repository" in refused.message
    assert refused.hint == "fetch it, or look at `git log`"


def test_an_id_that_a_shallow_clone_lacks_may_be_had(project: fake_project.Project, tmp_path: Path) -> None:
    first = project.git("rev-parse", "HEAD")
    project.commit("second", work=120)
    project.git("clone", "-q", "--depth", "1", f"file://{project.path}", str(tmp_path / "shallow"))
    assert refusal(tmp_path / "shallow", first).hint == "this clone is shallow: fetch more history"


def test_a_repository_without_a_commit_is_told_so(tmp_path: Path) -> None:
    project = fake_project.Project(tmp_path)
    project.git("init", "-q")
    refused = refusal(tmp_path, "main")
    assert refused.message == "'main' must name a commit; this repository has none yet"
    assert refused.hint == "commit first"


def test_names_that_are_near_are_proposed_and_else_where_to_look(project: fake_project.Project) -> None:
    project.git("branch", "mains")
    assert refusal(project.path, "mian").hint == "did you mean main or mains?"
    assert refusal(project.path, "zzz").hint == "`git branch -a` and `git tag` list what is here"


def test_a_line_begins_behind_its_start(project: fake_project.Project) -> None:
    """Neither a commit of another root nor the commit itself is the start of a line to it."""
    project.git("checkout", "-q", "--orphan", "other")
    project.commit("another root", work=70)
    main, other = (sources.resolve(project.path, name) for name in ("main", "other"))
    for good, bad in ((main, other), (other, other)):
        with pytest.raises(BadRef, match="must be an earlier commit on the first-parent line"):
            sources.first_parents(project.path, good, bad)


# --- candidates


def test_a_candidate_that_begins_a_history_of_its_own_covers_it(project: fake_project.Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.git("checkout", "-q", "--orphan", "other")
    orphan = project.commit("another root", work=70)
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-s", "ours", "-m", "both", "other")
    head = project.git("rev-parse", "HEAD")
    assert sources.strangers(project.path, base, head, [], []) == [orphan]
    assert sources.strangers(project.path, base, head, [], [orphan]) == []


def test_of_no_commits_none_is_missing_wherever(tmp_path: Path) -> None:
    assert sources.missing(tmp_path, []) == []


# --- git itself


def test_the_callers_git_variables_are_not_handed_on_and_ours_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    monkeypatch.setenv("GITHUB_TOKEN", "kept")
    seen = git.environment({"GIT_INDEX_FILE": "ours"})
    assert (seen.get("GIT_DIR"), seen["GIT_INDEX_FILE"], seen["GITHUB_TOKEN"]) == (None, "ours", "kept")
    assert seen["GIT_OPTIONAL_LOCKS"] == "0"


def test_a_machine_without_git_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="git must be installed") as refused:
        sources.top(tmp_path)
    assert refused.value.hint == "install git"


def test_what_git_says_without_naming_a_fault_is_told_by_its_last_line(
    project: fake_project.Project,
) -> None:
    with pytest.raises(BadInput, match=r"git no-such must work .* it said: .*no-such.*is not a git command"):
        git.tell(project.path, "no-such")


def test_only_the_codes_that_are_awaited_pass(project: fake_project.Project) -> None:
    asking = (project.path, b"README\0", "check-ignore", "-z", "--stdin")
    assert git.feed(*asking, codes=(0, 1)) == b""
    with pytest.raises(BadInput):
        git.feed(*asking)
    assert git.feed(project.path, b"text", "hash-object", "--stdin").strip()


def test_a_folder_knows_its_work_tree_and_one_outside_is_refused(
    project: fake_project.Project, tmp_path: Path
) -> None:
    assert sources.top(project.path / "harness") == project.path
    with pytest.raises(BadInput, match="must run inside a git repository's work tree") as refused:
        sources.top(tmp_path)
    assert refused.value.hint == "change into the repository"


def test_a_detached_head_is_no_branch(project: fake_project.Project) -> None:
    assert sources.branch(project.path) == "main"
    project.git("checkout", "-q", "--detach")
    assert sources.branch(project.path) is None


def test_changes_are_told_by_their_paths_and_a_clean_tree_has_none(project: fake_project.Project) -> None:
    assert sources.dirty(project.path) == []
    project.write("n", "a name of one letter\n")
    project.write("README", "changed\n")
    assert sorted(sources.dirty(project.path)) == ["README", "n"]


# --- the work tree


def test_a_work_tree_without_an_index_has_a_tree_too(tmp_path: Path) -> None:
    project = fake_project.Project(tmp_path)
    project.git("init", "-q", "-b", "main")
    project.write("one", "text\n")
    found = sources.tree_of_worktree(tmp_path)
    assert not (tmp_path / ".git" / "index").exists()
    assert not any((tmp_path / ".git" / "objects").glob("??")), "nothing was stored"
    project.commit("first")
    assert found == project.git("rev-parse", "HEAD^{tree}")


def test_a_file_that_is_kept_though_ignored_belongs_to_the_tree(project: fake_project.Project) -> None:
    project.write(".gitignore", "*.bin\n")
    project.write("kept.bin", "one\n")
    project.git("add", "-f", "kept.bin")
    project.commit("kept")
    index = project.path / ".git" / "index"
    before = (index.read_bytes(), index.stat().st_mtime_ns)
    assert sources.tree_of_worktree(project.path) == project.git("rev-parse", "HEAD^{tree}")
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
