"""Checks: real commands, on the tree they say, with results bound to that tree."""

from __future__ import annotations

from pathlib import Path

import fake_project
import pytest

from cartlab import checks, config, lease, sources
from cartlab.errors import UsageError

SURFACES = """
[surfaces.tests]
paths = ["tests/**"]
quick = ["cat README", "test -z \\"$PYTHONPATH\\""]
full = ["cat README", "$CARTLAB_PYTHON -c 'print(6 * 7)'", "exit 3"]
"""


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo", fake_project.CONFIG + SURFACES)


def test_a_passing_surface_is_bound_to_the_tree_of_the_work_tree(
    project: fake_project.Project, tmp_path: Path
) -> None:
    settings = config.load(project.path)
    project.write("README", "changed\n")
    done = checks.run(settings, checks.choose(settings, "native"), quick=True, root=tmp_path / "root")
    assert done.passed
    assert done.commit is None
    project.commit("the same tree")
    assert done.tree == sources.resolve(project.path, "HEAD").tree


def test_a_ref_is_checked_in_a_clean_checkout(project: fake_project.Project, tmp_path: Path) -> None:
    settings = config.load(project.path)
    project.write("README", "changed, not committed\n")
    ref = sources.resolve(project.path, "HEAD")
    root = tmp_path / "root"
    done = checks.run(settings, checks.choose(settings, "tests"), quick=True, root=root, ref=ref)
    assert done.passed
    assert (done.tree, done.commit) == (ref.tree, ref.commit)
    assert done.checks[0].tail == "fake\n"
    assert not (root / "tmp" / "checks" / "src").exists()


def test_a_refs_checks_see_its_built_package(project: fake_project.Project, tmp_path: Path) -> None:
    text = SURFACES.replace('test -z \\"$PYTHONPATH\\"', "ls $PYTHONPATH $CARTLAB_BUILD_DIR")
    settings = config.parse(fake_project.CONFIG + text, project.path / config.FILE)
    ref = sources.resolve(project.path, "HEAD")
    build = sources.build(settings, ref, tmp_path / "root")
    surfaces = checks.choose(settings, "tests")
    done = checks.run(settings, surfaces, quick=True, root=tmp_path / "root", ref=ref, build=build)
    assert done.checks[1].tail.count("libengine.so") == 2


def test_a_controller_among_the_checks_does_not_wait_for_the_one_that_runs_them(
    project: fake_project.Project, tmp_path: Path
) -> None:
    nested = "$CARTLAB_PYTHON -c 'from cartlab import lease; lease.hold(0).__enter__()'"
    text = SURFACES.replace("exit 3", nested)
    settings = config.parse(fake_project.CONFIG + text, project.path / config.FILE)
    with lease.hold(0):
        done = checks.run(settings, checks.choose(settings, "tests"), quick=False, root=tmp_path / "root")
    assert done.passed, done.failures


def test_every_command_runs_and_a_failure_is_told_with_its_output(
    project: fake_project.Project, tmp_path: Path
) -> None:
    settings = config.load(project.path)
    done = checks.run(settings, checks.choose(settings, "tests"), quick=False, root=tmp_path / "root")
    assert [check.passed for check in done.checks] == [True, True, False]
    assert not done.passed
    assert [check.returncode for check in done.failures] == [3]
    assert done.checks[1].tail == "42\n"
    assert done.to_json()["passed"] is False


def test_a_check_that_hangs_counts_as_failed(project: fake_project.Project, tmp_path: Path) -> None:
    text = (fake_project.CONFIG + SURFACES).replace('"exit 3"', '"sleep 60"')
    text = text.replace("[checks]\ntimeout_s = 60", "[checks]\ntimeout_s = 0.3")
    settings = config.parse(text, project.path / config.FILE)
    done = checks.run(settings, checks.choose(settings, "tests"), quick=False, root=tmp_path / "root")
    assert done.failures[0].returncode is None
    assert "killed after 0.3 s" in done.failures[0].tail


def test_a_work_tree_that_changes_under_its_checks_is_bound_to_no_tree(
    project: fake_project.Project, tmp_path: Path
) -> None:
    settings = config.parse(
        fake_project.CONFIG + SURFACES.replace("cat README", "echo more >> README"),
        project.path / config.FILE,
    )
    done = checks.run(settings, checks.choose(settings, "tests"), quick=True, root=tmp_path / "root")
    assert done.passed
    assert done.tree is None


def test_auto_takes_the_surfaces_that_the_changed_paths_belong_to(project: fake_project.Project) -> None:
    settings = config.load(project.path)

    def names(*changed: str) -> list[str]:
        return [surface.name for surface in checks.choose(settings, "auto", changed)]

    assert names("engine.c") == ["native"]
    assert names("tests/deep/test_a.py") == ["tests"]
    assert names("engine.c", "tests/x") == ["native", "tests"]
    assert names("README") == ["native", "tests"]
    with pytest.raises(UsageError, match="must be one of auto, native, tests"):
        checks.choose(settings, "python")
