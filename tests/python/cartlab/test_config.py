"""autoresearch.toml: every key is known, every value has its type, and a mistake is named."""

from __future__ import annotations

from pathlib import Path

import fake_project
import pytest

from cartlab import config
from cartlab.errors import BadInput


def test_the_fake_projects_file_is_read_into_values() -> None:
    found = config.parse(fake_project.CONFIG)
    assert found.project == "fake"
    assert found.build.artifact == "libengine.so"
    assert found.workload().params == {"lanes": 4, "work": 2000}
    assert found.workload().verify_steps == 20
    assert found.surfaces["native"].quick == ("cc -fsyntax-only engine.c",)
    assert found.protected == ("harness/**", "autoresearch.toml")
    assert found.layout_command is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("schema = 1", "schema = 2", "schema must be 1"),
        ("schema = 1", "", "must set schema"),
        ("timeout_s = 60\n\n[workload", "timeout = 60\n\n[workload", "unknown key build.timeout"),
        ('name = "fake"', 'name = "fake"\ncolour = "red"', "unknown key project.colour"),
        ('kind = "slices"', 'kind = "slice"', "workload.fake.kind must be one of"),
        ('direction = "higher"', 'direction = "up"', "workload.fake.direction must be one of"),
        ("verify = 20", 'verify = "20"', "workload.fake.verify must be a number"),
        ("verify = 20", "verify = true", "workload.fake.verify must be a number"),
        (
            'quick = ["cc -fsyntax-only engine.c"]',
            "quick = []",
            "surfaces.native.quick must hold at least one",
        ),
        ('default_workload = "fake"', 'default_workload = "other"', "default_workload must be one of fake"),
        ('paths = ["engine.c"]', 'paths = "engine.c"', "surfaces.native.paths must be a list of texts"),
        ("schema = 1", "schema = ", "must be TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_line(old: str, new: str, named: str) -> None:
    assert old in fake_project.CONFIG
    with pytest.raises(BadInput) as error:
        config.parse(fake_project.CONFIG.replace(old, new, 1))
    assert named in error.value.message
    assert error.value.exit_code == 25


def test_a_repository_without_the_file_is_told_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"must stand at the repository's top"):
        config.load(tmp_path)


def test_replaced_params_make_another_workload() -> None:
    found = config.parse(fake_project.CONFIG)
    assert found.workload(params={"lanes": 8}).hash != found.workload().hash
    with pytest.raises(BadInput, match="must be one of fake"):
        found.workload("nonsense")


def test_a_workload_may_guard_and_may_not_name_a_draw_of_its_own() -> None:
    guarding = fake_project.CONFIG.replace("verify = 20", "verify = 20\nguards = true")
    assert config.parse(guarding).workload().guards
    assert not config.parse(fake_project.CONFIG).workload().guards
    with pytest.raises(BadInput, match="guards must be true or false"):
        config.parse(fake_project.CONFIG.replace("verify = 20", "verify = 20\nguards = 1"))
    with pytest.raises(BadInput, match="held_out is the controller's own"):
        config.parse(fake_project.CONFIG.replace("lanes = 4", 'lanes = 4, held_out = "mine"'))
