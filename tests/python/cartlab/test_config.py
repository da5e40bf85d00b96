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
        ("schema = 1", "schema = " + "[" * 100_000, "must be TOML; it is nested too deeply"),
        ("schema = 1", 'schema = 2\nnews = "a key of that schema"', "schema must be 1; found 2"),
        ("schema = 1", "schema = true", "schema must be a number"),
        ('"libengine.so"', '"/usr/lib/libengine.so"', "build.artifact must name a file below"),
        ('"libengine.so"', '"../libengine.so"', "build.artifact must name a file below"),
        ('"libengine.so"', '""', "build.artifact must name a file below"),
        ("timeout_s = 60", "timeout_s = 0", "build.timeout_s must be seconds above 0; found 0.0"),
        ("timeout_s = 60", "timeout_s = -1", "build.timeout_s must be seconds above 0"),
        ("timeout_s = 60", "timeout_s = nan", "build.timeout_s must be seconds above 0"),
        ("timeout_s = 60", "timeout_s = inf", "build.timeout_s must be seconds above 0"),
        ("verify = 20", "verify = -20", "workload.fake.verify must be 0 or more"),
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


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ("runs = 0", "workload.rate.params.runs must be an even number of at least 2"),
        ("runs = 3", "params.runs must be an even number"),
        ('runs = "four"', "params.runs must be an even number"),
        ("runs = true", "params.runs must be an even number"),
        ('timeout_s = "long"', "workload.rate.params.timeout_s must be seconds above 0"),
        ("timeout_s = 0", "params.timeout_s must be seconds above 0"),
    ],
)
@pytest.mark.parametrize("kind", ["command", "pytest-benchmark"])
def test_what_the_controller_takes_of_a_commands_params_is_checked(
    kind: str, params: str, named: str
) -> None:
    workload = f'\n[workload.rate]\nkind = "{kind}"\ncommand = "x"\nmetric = "rate"\nparams = {{ %s }}\n'
    config.parse(fake_project.CONFIG + workload % "runs = 6, timeout_s = 2")
    with pytest.raises(BadInput, match=named):
        config.parse(fake_project.CONFIG + workload % params)


def test_a_file_that_is_no_utf8_is_named_by_its_byte(tmp_path: Path) -> None:
    (tmp_path / config.FILE).write_bytes(b'schema = 1\nx = "\xff"')
    with pytest.raises(BadInput, match=r"must be UTF-8 text; found 0xff at byte 16"):
        config.load(tmp_path)
