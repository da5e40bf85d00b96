"""Refs, exported trees and builds: right ids, exact bytes, and a repository that keeps every byte."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import fake_project
import pytest

from cartlab import config, sources
from cartlab.errors import BadRef, BadRoot, BuildFailed, ComplianceFailed, Tampered
from cartlab.sources import export, tools


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def every_byte(folder: Path) -> dict[str, tuple[str, int]]:
    """Path -> (digest, mode) of everything below, .git too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
        content = (
            str(path.readlink()).encode()
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        found[name] = (hashlib.sha256(content).hexdigest(), mode)
    return found


# --- refs


def test_every_way_to_name_a_commit_gives_the_same_ids(project: fake_project.Project) -> None:
    first = project.git("rev-parse", "HEAD")
    project.commit("two", work=110)
    project.commit("three", work=120)
    project.git("tag", "light", "HEAD~2")
    project.git("tag", "-a", "-m", "annotated", "heavy", "HEAD~2")
    project.git("branch", "old", "HEAD~2")
    for text in (first, first[:8], "light", "heavy", "old", "HEAD~2", "HEAD^^", "refs/heads/old"):
        ref = sources.resolve(project.path, text)
        assert (ref.name, ref.commit) == (text, first)
        assert ref.tree == project.git("rev-parse", f"{first}^{{tree}}")


def test_a_line_is_its_first_parents_and_ends_in_nothing_else(project: fake_project.Project) -> None:
    first = project.git("rev-parse", "HEAD")
    project.git("switch", "-q", "-c", "side")
    side = project.commit("side", work=110)
    project.git("switch", "-q", "main")
    second = project.commit("second", work=120)
    project.git("merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "side")
    good, bad, off = (sources.resolve(project.path, name) for name in (first, "HEAD", side))
    steps = sources.first_parents(project.path, good, bad)
    assert [(step.commit, step.subject) for step in steps] == [(second, "second"), (bad.commit, "merge")]
    assert steps[0].paths == ("engine.c",)
    for start in (off, bad):
        with pytest.raises(BadRef, match="on the first-parent line of 'HEAD'"):
            sources.first_parents(project.path, start, bad)


def test_only_what_counts_back_is_told_to_be_below_a_shallow_clones_end(
    project: fake_project.Project, tmp_path: Path
) -> None:
    project.commit("second", work=120)
    clone = tmp_path / "shallow"
    project.git("clone", "-q", "--depth", "1", f"file://{project.path}", str(clone))
    for text, shallow in (("HEAD~1", True), ("HEAD^", True), ("nothing", False)):
        with pytest.raises(BadRef) as refused:
            sources.resolve(clone, text)
        assert ("shallow" in refused.value.hint) == shallow, text
    with pytest.raises(BadRef) as refused:
        sources.resolve(project.path, "HEAD~9")
    assert "shallow" not in refused.value.hint


def test_a_merge_commit_is_a_commit_like_others(project: fake_project.Project) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.write("side.txt", "side\n")
    project.commit("side")
    project.git("checkout", "-q", "main")
    project.write("main.txt", "main\n")
    project.commit("main")
    project.git("-c", "core.editor=true", "merge", "-q", "--no-ff", "side")
    ref = sources.resolve(project.path, "HEAD")
    assert ref.commit == project.git("rev-parse", "HEAD")
    assert sources.resolve(project.path, "HEAD^2").commit == project.git("rev-parse", "side")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("0123456789abcdef0123456789abcdef01234567", "no object of that id"),
        ("mian", "no branch, tag or commit of that name"),
        ("HEAD~99", "must name a commit"),
        ("HEAD^{tree}", "names a tree"),
        ("HEAD:README", "names a blob"),
        ("A..B", "is a range"),
        ("--all", "such as HEAD~3; found '--all'"),
        ("^HEAD", "such as HEAD~3; found '^HEAD'"),
        ("two\nlines", "such as HEAD~3; found 'two\\nlines'"),
        ("x" * 1000, "no branch, tag or commit of that name"),
        ("x" * 1001, "and 961 characters more"),
        ("x" * 100_000, "and 99,960 characters more"),
        ("", "must be a branch"),
    ],
)
def test_what_is_no_commit_is_refused_with_what_was_found(
    project: fake_project.Project, text: str, named: str
) -> None:
    with pytest.raises(BadRef) as error:
        sources.resolve(project.path, text)
    assert named in error.value.message
    assert error.value.exit_code == 20


def test_a_misspelt_branch_gets_a_proposal(project: fake_project.Project) -> None:
    with pytest.raises(BadRef) as error:
        sources.resolve(project.path, "mian")
    assert error.value.hint == "did you mean main?"


def test_the_full_id_of_a_tree_is_refused_too(project: fake_project.Project) -> None:
    with pytest.raises(BadRef, match="names a tree"):
        sources.resolve(project.path, project.git("rev-parse", "HEAD^{tree}"))


# --- the repository keeps every byte


def test_resolving_exporting_and_building_change_no_byte_of_the_repository(
    project: fake_project.Project, root: Path
) -> None:
    project.commit("two", work=110)
    project.write("README", "changed, not committed\n")
    project.write("new.txt", "untracked\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    # An index whose times are stale is what `git status` likes to rewrite.
    os.utime(project.path / "engine.c", (1, 1))
    before = every_byte(project.path)
    settings = config.load(project.path)
    base, cand = (sources.resolve(project.path, text) for text in ("HEAD~1", "HEAD"))
    sources.check_compliance(project.path, base.commit, cand.commit, settings.protected)
    assert sorted(sources.dirty(project.path)) == ["README", "new.txt", "staged.txt"]
    assert sources.branch(project.path) == "main"
    sources.tree_of_worktree(project.path)
    for ref in (base, cand):
        sources.build(settings, ref, root)
    assert every_byte(project.path) == before


def test_the_tree_of_the_work_tree_is_the_tree_of_its_commit(project: fake_project.Project) -> None:
    project.write("new.txt", "text\n")
    project.write("README", "changed\n")
    (project.path / ".gitignore").write_text("*.tmp\n")
    project.write("ignored.tmp", "text\n")
    found = sources.tree_of_worktree(project.path)
    project.commit("all of it")
    assert found == project.git("rev-parse", "HEAD^{tree}")


def test_an_edit_of_the_same_size_and_time_as_the_commit_is_seen(project: fake_project.Project) -> None:
    project.git("config", "core.trustctime", "false")
    file, index = project.path / "engine.c", project.path / ".git" / "index"
    stamp = 10**18
    project.engine(work=50)
    os.utime(file, ns=(stamp, stamp))
    project.commit("fifty")
    os.utime(index, ns=(stamp, stamp))
    project.engine(work=90)
    os.utime(file, ns=(stamp, stamp))
    found = sources.tree_of_worktree(project.path)
    assert found != project.git("rev-parse", "HEAD^{tree}")


# --- exported trees


def test_attributes_do_not_alter_an_exported_tree(project: fake_project.Project, tmp_path: Path) -> None:
    project.write(".gitattributes", "hidden.txt export-ignore\nid.txt export-subst\ncrlf.txt text eol=crlf\n")
    project.write("hidden.txt", "must be there\n")
    project.write("id.txt", "$Format:%H$\n")
    project.write("crlf.txt", "one\ntwo\n")
    project.write("run.sh", "#!/bin/sh\n")
    (project.path / "run.sh").chmod(0o755)
    project.commit("attributes")
    done = export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")
    assert (done.path / "hidden.txt").read_text() == "must be there\n"
    assert (done.path / "id.txt").read_bytes() == b"$Format:%H$\n"
    assert (done.path / "crlf.txt").read_bytes() == b"one\ntwo\n"
    assert os.access(done.path / "run.sh", os.X_OK)
    assert set(done.rewritten) == {"hidden.txt", "crlf.txt", "id.txt"} or set(done.rewritten) == {
        "hidden.txt",
        "crlf.txt",
    }


def test_exported_files_carry_the_time_of_their_extraction(
    project: fake_project.Project, tmp_path: Path
) -> None:
    before = project.path.stat().st_mtime
    done = export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")
    commit_time = int(project.git("log", "-1", "--format=%ct"))
    for name in ("engine.c", "README"):
        assert (done.path / name).stat().st_mtime >= max(before, commit_time) - 1
    later = export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")
    assert (later.path / "README").stat().st_mtime_ns >= (done.path / "README").stat().st_mtime_ns


@pytest.mark.parametrize(
    "target", ["/etc/hostname", "../outside", "sub/../../outside", "../out/README", "{out}/README"]
)
def test_a_symbolic_link_out_of_the_tree_is_refused(
    project: fake_project.Project, tmp_path: Path, target: str
) -> None:
    (project.path / "link").symlink_to(target.format(out=tmp_path / "out"))
    project.commit("link")
    with pytest.raises(ComplianceFailed, match="link leads to"):
        export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_symbolic_link_out_of_the_tree_through_another_link_is_refused(
    project: fake_project.Project, tmp_path: Path
) -> None:
    (project.path / "a" / "b").mkdir(parents=True)
    (project.path / "a" / "b" / "top").symlink_to("../..")
    (project.path / "sly").symlink_to("a/b/top/../x")
    project.commit("link")
    with pytest.raises(ComplianceFailed, match="sly leads to"):
        export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")


def test_a_symbolic_link_inside_the_tree_stays_a_link(project: fake_project.Project, tmp_path: Path) -> None:
    (project.path / "inside").symlink_to("README")
    project.commit("link")
    done = export.export(project.path, sources.resolve(project.path, "HEAD"), tmp_path / "out")
    assert str((done.path / "inside").readlink()) == "README"


# --- protected paths


def test_a_candidate_that_touches_a_protected_path_is_named(project: fake_project.Project) -> None:
    settings = config.load(project.path)
    base = project.git("rev-parse", "HEAD")
    project.write("harness/workload.py", "# a friendlier clock\n")
    cand = project.commit("harness")
    with pytest.raises(ComplianceFailed, match=r"harness/workload\.py") as error:
        sources.check_compliance(project.path, base, cand, settings.protected)
    assert error.value.exit_code == 18
    assert sources.check_compliance(project.path, base, cand, settings.protected, ["harness/*"]) == [
        "harness/workload.py"
    ]


@pytest.mark.parametrize(("count", "ending"), [(3, "harness/2"), (4, "harness/2 and 1 more")])
def test_three_protected_paths_are_named_and_further_ones_counted(
    project: fake_project.Project, count: int, ending: str
) -> None:
    settings, base = config.load(project.path), project.git("rev-parse", "HEAD")
    for number in range(count):
        project.write(f"harness/{number}", "x")
    cand = project.commit("many")
    with pytest.raises(ComplianceFailed) as refused:
        sources.check_compliance(project.path, base, cand, settings.protected)
    assert refused.value.message.endswith(ending)
    assert len(refused.value.details["protected_paths"]) == count


def test_moving_a_file_out_of_a_protected_folder_is_touching_it(project: fake_project.Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.git("mv", "harness/workload.py", "elsewhere.py")
    cand = project.commit("moved")
    assert sources.changed(project.path, base, cand) == ["elsewhere.py", "harness/workload.py"]
    with pytest.raises(ComplianceFailed):
        sources.check_compliance(project.path, base, cand, ["harness/**"])


@pytest.mark.parametrize(
    ("glob", "path", "is_match"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a/", "a/b/c", True),
        ("**/x.py", "x.py", True),
        ("**/x.py", "d/e/x.py", True),
        ("*.py", "d/x.py", False),
        ("a?c", "abc", True),
        ("a.c", "abc", False),
    ],
)
def test_globs_stop_at_folders_unless_doubled(glob: str, path: str, is_match: bool) -> None:
    assert sources.matches(path, [glob]) is is_match


# --- builds


def test_a_build_is_made_once_and_found_again(project: fake_project.Project, root: Path) -> None:
    settings, ref = config.load(project.path), sources.resolve(project.path, "HEAD")
    made = sources.build(settings, ref, root)
    again = sources.build(settings, ref, root)
    assert (made.cached, again.cached) == (False, True)
    assert (made.build_id, made.artifact_sha256) == (again.build_id, again.artifact_sha256)
    assert Path(made.path, made.artifact).is_file()
    assert "engine.c" in [path.name for path in (root / "builds").rglob("*")] or sources.log_of(made).exists()


def test_two_refs_of_one_tree_share_a_build_and_another_tree_does_not(
    project: fake_project.Project, root: Path
) -> None:
    settings = config.load(project.path)
    first = sources.build(settings, sources.resolve(project.path, "HEAD"), root)
    project.commit("empty")
    assert sources.build(settings, sources.resolve(project.path, "HEAD"), root).build_id == first.build_id
    project.commit("slower", work=150)
    other = sources.build(settings, sources.resolve(project.path, "HEAD"), root)
    assert other.build_id != first.build_id
    assert other.artifact_sha256 != first.artifact_sha256


def test_flags_of_the_caller_and_of_the_file_are_part_of_the_key(
    project: fake_project.Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, ref = config.load(project.path), sources.resolve(project.path, "HEAD")
    ids = {sources.build(settings, ref, root).build_id}
    monkeypatch.setenv("CFLAGS", "-O2")
    ids.add(sources.build(settings, ref, root).build_id)
    monkeypatch.delenv("CFLAGS")
    text = fake_project.CONFIG.replace("-O1", "-O2")
    ids.add(sources.build(config.parse(text, settings.path), ref, root).build_id)
    assert len(ids) == 3


def test_where_and_how_parallel_the_caller_builds_is_no_part_of_the_key_and_does_not_matter(
    project: fake_project.Project, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = project.build(root)
    for name in ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "theirs"))
    monkeypatch.setenv("CARGO_BUILD_JOBS", "1")
    monkeypatch.setenv("CARGO_NET_RETRY", "7")  # how to reach a registry is the machine's affair
    assert project.build(root).build_id == first.build_id
    seen = tools.environment(config.load(project.path).build, root / "a/out", root / "target", root / "link")
    assert seen["CARGO_TARGET_DIR"] == str(root / "target") and seen["CARGO_BUILD_JOBS"] == "1"
    assert seen["CARGO_NET_RETRY"] == "7"
    assert str(tmp_path / "theirs") not in seen.values()


def test_accept_tiers_build_in_a_fresh_target_and_screen_may_use_that_build(
    project: fake_project.Project, root: Path
) -> None:
    command = "ls $CARGO_TARGET_DIR; touch $CARGO_TARGET_DIR/trace; cc "
    settings = config.parse(fake_project.CONFIG.replace("cc ", command, 1), project.path / config.FILE)
    first = sources.build(settings, sources.resolve(project.path, "HEAD"), root)
    project.commit("two", work=110)
    shared = sources.build(settings, sources.resolve(project.path, "HEAD"), root)
    assert "trace" in sources.log_of(shared).read_text()
    fresh = sources.build(settings, sources.resolve(project.path, "HEAD"), root, fresh=True)
    assert "trace" not in sources.log_of(fresh).read_text()
    assert fresh.build_id != shared.build_id
    project.commit("three", work=120)
    ref = sources.resolve(project.path, "HEAD")
    made = sources.build(settings, ref, root, fresh=True)
    assert sources.build(settings, ref, root).build_id == made.build_id
    assert sources.build(settings, sources.resolve(project.path, "HEAD~2"), root).build_id == first.build_id


def test_both_sides_are_built_at_one_place(project: fake_project.Project, root: Path) -> None:
    settings = config.parse(
        fake_project.CONFIG.replace("cc ", "pwd; echo $CARTLAB_BUILD_DIR; cc ", 1),
        project.path / config.FILE,
    )
    project.commit("two", work=110)
    logs = [
        sources.log_of(sources.build(settings, sources.resolve(project.path, text), root)).read_text()
        for text in ("HEAD~1", "HEAD")
    ]
    assert logs[0] == logs[1]
    assert len(logs[0].splitlines()) == 2


def test_a_ref_that_does_not_build_leaves_its_log_and_no_stamp(
    project: fake_project.Project, root: Path
) -> None:
    project.write("engine.c", "this is no C\n")
    project.commit("broken")
    with pytest.raises(BuildFailed) as error:
        sources.build(config.load(project.path), sources.resolve(project.path, "HEAD"), root)
    assert error.value.exit_code == 14
    assert "engine.c" in error.value.details["log_tail"]
    assert (root / error.value.details["log"]).is_file()
    assert not list((root / "builds").rglob("stamp.json"))


def test_a_build_that_fails_on_a_full_disk_is_not_the_revisions_fault(
    project: fake_project.Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("engine.c", "no C at all\n")
    project.commit("broken")
    usage = shutil.disk_usage(root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=100_000))
    with pytest.raises(BadRoot, match="97 KiB free"):
        project.build(root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=4 << 20))
    with pytest.raises(BuildFailed):
        project.build(root)


def test_a_build_that_leaves_no_artifact_failed(project: fake_project.Project, root: Path) -> None:
    settings = config.parse(
        fake_project.CONFIG.replace('"libengine.so"', '"other.so"', 1), project.path / config.FILE
    )
    with pytest.raises(BuildFailed, match=r"must leave one file other\.so"):
        sources.build(settings, sources.resolve(project.path, "HEAD"), root)


def test_a_build_that_hangs_is_killed_with_its_children(project: fake_project.Project, root: Path) -> None:
    text = fake_project.CONFIG.replace("cc ", "setsid sleep 61.25 & sleep 61.25; cc ", 1)
    text = text.replace("timeout_s = 60", "timeout_s = 0.3", 1)
    with pytest.raises(BuildFailed, match="was killed"):
        sources.build(
            config.parse(text, project.path / config.FILE), sources.resolve(project.path, "HEAD"), root
        )
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "sleep 61.25" not in listed.splitlines()


def test_a_build_without_its_stamp_or_with_a_changed_file_is_made_anew(
    project: fake_project.Project, root: Path
) -> None:
    settings, ref = config.load(project.path), sources.resolve(project.path, "HEAD")
    made = sources.build(settings, ref, root)
    (Path(made.path).parent / "stamp.json").unlink()
    assert not sources.build(settings, ref, root).cached
    Path(made.path, made.artifact).write_bytes(b"not what was built")
    with pytest.raises(Tampered, match="changed on disk"):
        sources.check(made)
    assert not sources.build(settings, ref, root).cached
    sources.check(made)
