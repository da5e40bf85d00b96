"""A tree as files, rule by rule: what an archive leaves out, alters, or would write where it must not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import fake_project
import pytest

from cartlab import sources
from cartlab.errors import BadInput, ComplianceFailed
from cartlab.model import Ref
from cartlab.sources import export


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    project = fake_project.Project(tmp_path / "repo")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    return project


def exported(project: fake_project.Project, tree: str = "") -> export.Exported:
    ref = Ref("made", "", tree) if tree else sources.resolve(project.path, "HEAD")
    return export.export(project.path, ref, project.path.parent / "out")


def a_tree(project: fake_project.Project, *rows: tuple[str, str, str]) -> str:
    """The id of a tree of (mode, name, content or the id of a tree), which git itself would not write so."""
    lines = []
    for mode, name, content in rows:
        kind = "tree" if mode == "040000" else "blob"
        if kind == "blob":
            content = said(project, "hash-object", "-w", "--stdin", given=content)
        lines.append(f"{mode} {kind} {content}\t{name}\n")
    return said(project, "mktree", given="".join(lines))


def said(project: fake_project.Project, *words: str, given: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=project.path, input=given, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_plain_tree_needs_no_putting_right(project: fake_project.Project) -> None:
    project.write("sub/file", "text\n")
    project.write("run.sh", "#!/bin/sh\n")
    (project.path / "run.sh").chmod(0o755)
    (project.path / "link").symlink_to("sub/file")
    project.write("path", "../outside")  # where a link would lead out, text does not
    project.commit("plain")
    done = exported(project)
    assert (done.files, done.rewritten, done.submodules) == (4, (), ())
    assert (done.path / "sub/file").read_bytes() == b"text\n"
    assert str((done.path / "link").readlink()) == "sub/file"
    modes = {name: (done.path / name).stat().st_mode & 0o777 for name in ("sub/file", "run.sh", "path")}
    assert modes == {"sub/file": 0o644, "run.sh": 0o755, "path": 0o644}


def test_what_was_in_the_folder_is_gone_and_an_empty_tree_is_an_empty_folder(
    project: fake_project.Project,
) -> None:
    (project.path.parent / "out").mkdir()
    (project.path.parent / "out" / "old").write_text("left over\n")
    assert list(exported(project, a_tree(project)).path.iterdir()) == []


def test_a_submodule_is_an_empty_folder(project: fake_project.Project) -> None:
    project.write("file", "text\n")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},parts/other")
    project.git("add", "file")
    project.git("commit", "-q", "-m", "with a submodule")
    done = exported(project)
    assert (done.files, done.rewritten, done.submodules) == (2, (), ("parts/other",))
    assert (done.path / "parts/other").is_dir() and list((done.path / "parts/other").iterdir()) == []


def test_a_submodule_that_an_archive_leaves_out_is_an_empty_folder_too(project: fake_project.Project) -> None:
    project.write(".gitattributes", "parts export-ignore\n")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},parts")
    project.git("add", ".gitattributes")
    project.git("commit", "-q", "-m", "with a submodule")
    assert (exported(project).path / "parts").is_dir()


def test_links_stay_inside_by_their_text_wherever_they_lie(project: fake_project.Project) -> None:
    for target, leads_out in {
        "..": True,
        "../..": True,
        "/": True,
        "/etc": True,
        "sub/../..": True,
        ".": False,
        "..name": False,
        "sub/..": False,
        "...": False,
    }.items():
        tree = a_tree(project, ("120000", "link", target))
        if leads_out:
            with pytest.raises(ComplianceFailed, match="link leads to"):
                exported(project, tree)
        else:
            assert str((exported(project, tree).path / "link").readlink()) == target
    below = a_tree(project, ("040000", "sub", a_tree(project, ("120000", "up", ".."))))
    assert str((exported(project, below).path / "sub/up").readlink()) == ".."


def test_of_two_entries_of_one_name_the_last_counts_and_nothing_is_written_through_a_link(
    project: fake_project.Project,
) -> None:
    """As where a file system takes two names for one."""
    done = exported(
        project, a_tree(project, ("100644", "a", "one\n"), ("100644", "x", "two\n"), ("120000", "x", "a"))
    )
    assert str((done.path / "x").readlink()) == "a"
    assert (done.path / "a").read_text() == "one\n"


def test_a_tree_that_cannot_lie_on_a_disk_is_refused(project: fake_project.Project) -> None:
    """`d` is a link to `a` and a folder: d/x and a/x are one file of two contents."""
    one, two = (a_tree(project, ("100644", "x", text)) for text in ("one\n", "two\n"))
    both = a_tree(project, ("040000", "a", one), ("120000", "d", "a"), ("040000", "d", two))
    with pytest.raises(BadInput, match="every exported file must equal its blob; d/x does not") as refused:
        exported(project, both)
    assert "differ only in case" in refused.value.hint


def test_blobs_of_a_repository_with_longer_ids_are_compared_too(tmp_path: Path) -> None:
    project = fake_project.Project(tmp_path / "repo")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main", "--object-format=sha256")
    project.write(".gitattributes", "id export-subst\n")
    project.write("id", "$Format:%H$\n")
    project.write("plain", "text\n")
    project.commit("longer ids")
    done = exported(project)
    assert (done.files, done.path.joinpath("plain").read_text()) == (3, "text\n")
    assert "plain" not in done.rewritten


def test_a_file_that_the_archive_leaves_out_comes_from_its_blob_and_is_named(
    project: fake_project.Project,
) -> None:
    project.write(".gitattributes", "hidden export-ignore\n")
    project.write("hidden", "there\n")
    project.commit("hidden")
    done = exported(project)
    assert done.rewritten == ("hidden",)
    assert (done.path / "hidden").read_text() == "there\n"
