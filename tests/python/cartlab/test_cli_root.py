"""Where the root is found, in which order, and where it may not lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from cartlab.errors import BadRoot
from cartlab.root import VARIABLE, find_repository, read_dotenv, resolve_root


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "autoresearch.toml").write_text("schema = 1\n")
    return tmp_path / "repo"


def test_the_flag_wins_over_the_variable_over_the_dotenv_over_the_default(repo: Path, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    default = resolve_root(repo, None, env)
    assert (
        default.path.is_relative_to(tmp_path / "state" / "cartlab")
        and default.source == "default state folder"
    )
    (repo / ".env").write_text(f"# a comment\nexport {VARIABLE}='../from dotenv' # why\nOTHER=1\n")
    assert resolve_root(repo, None, env).path == tmp_path / "from dotenv"
    env[VARIABLE] = str(tmp_path / "from-variable")
    assert resolve_root(repo, None, env).path == tmp_path / "from-variable"
    found = resolve_root(repo, "~/from-flag", env)
    assert found.path == tmp_path / "from-flag" and found.source == "--autoresearch-root"


def test_two_clones_of_one_name_have_two_default_roots(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    for name in ("a", "b"):
        (tmp_path / name / "repo" / ".git").mkdir(parents=True)
    assert (
        resolve_root(tmp_path / "a/repo", None, env).path != resolve_root(tmp_path / "b/repo", None, env).path
    )


def test_a_root_inside_the_repository_is_refused_also_through_a_link(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo)
    for inside in (repo, repo / "state", repo / ".git" / "state", tmp_path / "link" / "deep" / "er"):
        with pytest.raises(BadRoot) as caught:
            resolve_root(repo, str(inside), {"HOME": str(tmp_path)})
        assert caught.value.exit_code == 21 and "outside" in caught.value.message


def test_a_file_is_no_root(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRoot):
        resolve_root(repo, str(tmp_path / "file"), {})
    with pytest.raises(BadRoot):
        resolve_root(repo, str(tmp_path / "file" / "below"), {})
    with pytest.raises(BadRoot):
        resolve_root(repo, " ", {})


def test_a_worktrees_root_may_not_lie_beside_the_files_of_its_clone(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    own = repo / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {own}\n")
    with pytest.raises(BadRoot, match="outside the repository"):
        resolve_root(tree, str(repo / "state"), {})
    assert resolve_root(tree, str(tmp_path / "state"), {}).path == tmp_path / "state"


def test_a_worktrees_root_may_not_lie_in_the_clone_it_belongs_to(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    own = repo / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {own}\n")
    with pytest.raises(BadRoot):
        resolve_root(tree, str(repo / ".git" / "state"), {})


def test_the_repository_is_the_one_around_us_else_the_scripts_own(repo: Path, tmp_path: Path) -> None:
    (repo / "deep" / "er").mkdir(parents=True)
    assert find_repository(repo / "deep" / "er") == repo
    assert find_repository(tmp_path, repo / "deep") == repo
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert find_repository(other, repo) == repo
    assert find_repository(other) == other


def test_a_dotenv_line_may_be_quoted_exported_or_commented(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('A=1\nexport B = "two words" # c\n#C=3\nD=four # d\n\nnonsense\nE=\n')
    assert read_dotenv(tmp_path / ".env") == {"A": "1", "B": "two words", "D": "four", "E": ""}
    assert read_dotenv(tmp_path / "absent") == {}
