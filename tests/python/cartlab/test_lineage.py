"""What git is asked: whose a commit is, which are gone; and its words where it fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fake_project
import pytest

from cartlab import sources
from cartlab.errors import BadInput
from cartlab.sources import git

INPUTS = ["engine.c"]


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


def test_a_candidate_covers_its_first_parents_and_no_others_are_told(project: fake_project.Project) -> None:
    base = project.git("rev-parse", "HEAD")
    first = project.commit("first", work=90)
    second = project.commit("second", work=80)
    assert sources.strangers(project.path, base, second, INPUTS, []) == [first, second]
    assert sources.strangers(project.path, base, second, INPUTS, [first]) == [second]
    assert sources.strangers(project.path, base, second, INPUTS, [second]) == []
    assert sources.strangers(project.path, first, second, INPUTS, []) == [second]
    assert sources.strangers(project.path, base, second, INPUTS, ["f" * 40]) == [first, second]


def test_what_changes_nothing_that_is_built_is_no_stranger(project: fake_project.Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.write("README", "words\n")
    words = project.commit("words")
    assert sources.strangers(project.path, base, words, INPUTS, []) == []
    assert sources.strangers(project.path, base, words, [], []) == [words], "no globs: everything is built"


def test_what_a_merge_brings_in_is_its_own_candidate_or_a_stranger(project: fake_project.Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.git("checkout", "-q", "-b", "side")
    side = project.commit("side", work=90)
    project.git("checkout", "-q", "main")
    project.write("README", "words\n")
    project.commit("words")
    project.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    merged = project.git("rev-parse", "HEAD")
    assert sources.strangers(project.path, base, merged, INPUTS, [merged]) == [side]
    assert sources.strangers(project.path, base, merged, INPUTS, [merged, side]) == []


def test_what_git_has_no_longer_is_missing(project: fake_project.Project) -> None:
    head = project.git("rev-parse", "HEAD")
    assert sources.missing(project.path, []) == []
    assert sources.missing(project.path, ["f" * 40, head, "e" * 40]) == ["f" * 40, "e" * 40]
    blob = project.git("rev-parse", "HEAD:engine.c")
    assert sources.missing(project.path, [blob]) == [blob], "no commit"


@pytest.mark.parametrize("ask", [git.tell, lambda repo, *words: git.feed(repo, b"", *words)])
def test_where_git_fails_its_own_words_are_told(project: fake_project.Project, ask: Any) -> None:
    with pytest.raises(BadInput, match=r"it said: fatal: .*nope"):
        ask(project.path, "cat-file", "blob", "nope")
    base = project.git("rev-parse", "HEAD")
    project.commit("other", work=90)
    with pytest.raises(BadInput, match=r"it said: nothing$"):
        ask(project.path, "diff", "--quiet", base, "HEAD")


def test_a_repository_that_git_refuses_is_at_fault_and_no_name_in_it(project: fake_project.Project) -> None:
    (project.path / ".git" / "HEAD").write_text("garbage\n")
    with pytest.raises(BadInput, match=r"it said: fatal: not a git repository") as error:
        sources.resolve(project.path, "HEAD")
    assert error.value.exit_code == 25


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="giving files away takes root")
def test_a_repository_of_another_user_is_told_with_gits_proposal(
    project: fake_project.Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):  # where a user may have made an exception
        monkeypatch.setenv(name, str(tmp_path))
    for path in (project.path, *project.path.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.raises(BadInput, match=r"it said: fatal: detected dubious ownership") as error:
        sources.resolve(project.path, "HEAD")
    assert error.value.hint.startswith("git config --global --add safe.directory")
