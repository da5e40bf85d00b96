"""What compiles here and what a build sees of its caller, rule by rule: with tools of a line of shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from shell_builds import Recipe

from cartlab import sources
from cartlab.sources import toolfiles, tools


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two folders of PATH; no rustup."""
    found = (tmp_path / "first", tmp_path / "second")
    for place in found:
        place.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, found)))
    for name in ("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return found


def tool(place: Path, name: str, text: str) -> Path:
    path = place / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def a_folder(tmp_path: Path, name: str = "work") -> Path:
    """One that nobody has asked about: answers are remembered by folder."""
    folder = tmp_path / name
    folder.mkdir()
    return folder


# --- what the tools say


def test_tools_are_known_by_what_they_say_and_those_that_fail_by_nothing(
    tmp_path: Path, places: tuple[Path, Path]
) -> None:
    tool(places[0], "rustc", "echo rustc 1.90; echo host: here; echo in $PWD")
    tool(places[0], "cargo", "echo cargo 1.90; echo more")
    tool(places[1], "cc", "echo a compiler; exit 1")
    folder = a_folder(tmp_path)
    said = dict(sources.toolchain(folder))
    assert said.pop("python").endswith(sys.version.split()[0])
    assert said == {"rustc": f"rustc 1.90\nhost: here\nin {folder}", "cargo": "cargo 1.90"}


def test_a_tool_that_does_not_answer_is_ended_and_left_out(
    tmp_path: Path, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(places[0], "cc", f"/bin/sleep 2; echo late > {tmp_path}/late")
    tool(places[0], "ld", "echo ld 2.44")
    monkeypatch.setattr(tools, "_ANSWERS_WITHIN_S", 0.3)
    said = dict(sources.toolchain(a_folder(tmp_path)))
    del said["python"]
    assert "cc" not in said
    assert not (tmp_path / "late").exists()


def test_who_only_looks_asks_the_tools_once(tmp_path: Path, places: tuple[Path, Path]) -> None:
    tool(places[0], "cc", f"echo run >> {tmp_path}/runs; echo cc 14")
    folder, memory = a_folder(tmp_path), tmp_path / "memory"
    first = sources.toolchain_id(folder, memory)
    assert first == sources.toolchain_id(folder)
    tools.toolchain.cache_clear()
    assert sources.toolchain_id(folder, memory) == first
    assert (tmp_path / "runs").read_text() == "run\n"
    tool(places[1], "ld", "echo ld 2.44")
    tools.toolchain.cache_clear()
    other = sources.toolchain_id(folder, memory)
    assert other != first
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    assert sources.toolchain_id(folder) == other


@pytest.mark.parametrize("memory", ["", "[]", "{}", '{"files": "seen"}'])
def test_a_memory_that_cannot_be_read_is_written_anew(tmp_path: Path, memory: str) -> None:
    path = tmp_path / "memory"
    path.write_text(memory)
    for asked in ("first", "again"):
        assert toolfiles.remembered(path, "seen", lambda asked=asked: asked) == "first"  # type: ignore[misc]
    assert toolfiles.remembered(path, "others", lambda: "other") == "other"
    nowhere = tmp_path / "missing" / "memory"
    for asked in ("first", "again"):
        assert toolfiles.remembered(nowhere, "seen", lambda asked=asked: asked) == asked  # type: ignore[misc]
    assert not nowhere.parent.exists()


# --- their files


def test_a_tool_is_each_program_of_its_name_on_the_path(tmp_path: Path, places: tuple[Path, Path]) -> None:
    folder = a_folder(tmp_path)

    def print_of() -> str:
        return toolfiles.fingerprint(folder, ["cc", "ld"])

    seen = [print_of()]
    (places[0] / "cc").write_text("no program\n")
    (places[0] / "ld").mkdir()
    tool(places[0], "make", "no compiler")
    assert print_of() == seen[0]
    for place in reversed(places):
        (place / "ld").exists() and (place / "ld").rmdir()
        tool(place, "ld", "exit 0")
        seen.append(print_of())
    (places[0] / "cc").chmod(0o755)
    seen.append(print_of())
    tool(places[0], "cc", "exit 1")
    seen.append(print_of())
    assert len(set(seen)) == len(seen) == 5


def test_what_chooses_among_toolchains_is_part_of_the_print(
    tmp_path: Path, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_folder(tmp_path)

    def changed_by(path: Path) -> bool:
        before = toolfiles.fingerprint(folder, ["cc"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("chosen\n")
        return toolfiles.fingerprint(folder, ["cc"]) != before

    own, other = tmp_path / "home" / ".rustup", tmp_path / "other"
    assert changed_by(folder / "rust-toolchain")
    assert changed_by(tmp_path / "rust-toolchain.toml")
    assert not changed_by(folder / "toolchain")
    for name in ("settings.toml", "toolchains/one/bin/rustc", "toolchains/one/bin/cargo"):
        assert changed_by(own / name)
        assert not changed_by(other / name)
    monkeypatch.setenv("RUSTUP_HOME", str(other))
    assert changed_by(other / "settings.toml")
    assert not changed_by(own / "settings.toml")
    monkeypatch.delenv("RUSTUP_HOME")
    seen = toolfiles.fingerprint(folder, ["cc"])
    monkeypatch.delenv("HOME")
    assert toolfiles.fingerprint(folder, ["cc"]) != seen
    monkeypatch.setenv("RUSTUP_TOOLCHAIN", "nightly")
    assert toolfiles.fingerprint(folder, ["cc"]) != seen


# --- what a build sees


@pytest.mark.parametrize(
    ("name", "is_flag", "is_seen"),
    [
        ("RUSTFLAGS", True, True),
        ("CC", True, True),
        ("CARGO_PROFILE_RELEASE_LTO", True, True),
        ("CARGO_BUILD_TARGET", True, True),
        ("CARGO_BUILD_JOBS", False, True),
        ("CARGO_BUILD_TARGET_DIR", False, False),
        ("CARGO_TARGET_X86_64_LINKER", True, True),
        ("HTTPS_PROXY", False, True),
        ("CARGO_NET_OFFLINE", False, True),
        ("PYTHONPATH", False, False),
        ("GIT_DIR", False, False),
    ],
)
def test_a_build_sees_what_it_needs_and_its_key_what_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_flag: bool, is_seen: bool
) -> None:
    monkeypatch.setenv(name, "given")
    seen = tools.environment(Recipe(), tmp_path / "out", tmp_path / "target", tmp_path / "link")
    assert (tools.flags().get(name) == "given", seen.get(name) == "given") == (is_flag, is_seen)


def test_a_recipes_own_variables_go_before_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("CARGO_TARGET_DIR", "elsewhere")
    folders = (tmp_path / "out", tmp_path / "target", tmp_path / "link")
    seen = tools.environment(Recipe(env={"CFLAGS": "-O3"}), *folders)
    assert seen["CFLAGS"] == "-O3"
    assert seen["CARTLAB_BUILD_DIR"] == str(folders[0])
    assert seen["CARGO_TARGET_DIR"] == str(folders[1])
    assert seen["CARTLAB_LINK_DIR"] == str(folders[2])
    assert tools.environment(Recipe(), *folders)["CFLAGS"] == "-O0"
