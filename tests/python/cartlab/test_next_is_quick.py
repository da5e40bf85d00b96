"""What `next` may cost, without a clock: which modules it imports, which processes it starts, and that
what it remembers of the compilers is forgotten when they change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_bench import Bench
from quick_desk import Desk, make_desk, to_stacked

from cartlab.sources import toolfiles

# Runs `next` as typed, then tells which modules are loaded and which processes were started.
WATCHED = """
import json, sys
started = []
sys.addaudithook(lambda event, args: started.append(args[1]) if event == "subprocess.Popen" else None)
from cartlab.cli import main
code = main(["next"], prog="scripts/autoresearch.py")
print(json.dumps({"code": code, "modules": sorted(sys.modules), "started": started}), file=sys.stderr)
"""
# What measuring, statistics, checks and reports bring with them.
HEAVY = ("numpy", "scipy", "rollcart", "statistics", "tarfile", "asyncio", "html", "http")
HEAVY_ROOMS = (
    "cartlab.sources.builds",
    "cartlab.sources.export",
    "cartlab.measure",
    "cartlab.stats",
    "cartlab.checks",
    "cartlab.report",
    "cartlab.verify",
)
GIT_CALLS = 4


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    yield make_desk(tmp_path, monkeypatch, capsys)


def watched(desk: Desk) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=desk.project.path,
        env=Bench(desk.project, desk.root).environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = json.loads(done.stderr.splitlines()[-1])
    assert found["code"] == 0, done.stderr
    return dict(found)


def test_next_in_a_round_imports_little_and_starts_few_processes(desk: Desk) -> None:
    to_stacked(desk)
    first, again = watched(desk), watched(desk)
    for found in (first, again):
        modules = set(found["modules"])  # type: ignore[call-overload]
        assert "cartlab.round" in modules, "a round was looked at"
        assert not modules & {*HEAVY, *HEAVY_ROOMS}
    tools = [words[0] for words in again["started"]]  # type: ignore[attr-defined]
    assert set(tools) == {"git"} and len(tools) <= GIT_CALLS
    assert len(first["started"]) > len(tools)  # type: ignore[arg-type]


def test_next_without_a_round_starts_nothing_at_all(desk: Desk) -> None:
    assert desk.run("init").code == 0
    found = watched(desk)
    assert found["started"] == []
    assert not set(found["modules"]) & {*HEAVY, *HEAVY_ROOMS}  # type: ignore[call-overload]


def compiler(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


def test_what_is_remembered_of_the_compilers_goes_with_any_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "repo" / "inner", tmp_path / "rustup"
    work.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RUSTUP_HOME", str(home))
    cc = compiler(tmp_path / "bin" / "cc", "one")
    rustc = compiler(home / "toolchains" / "stable" / "bin" / "rustc", "1")
    memory = tmp_path / "tmp" / "toolchain.json"
    asked = 0

    def look() -> str:
        def ask() -> str:
            nonlocal asked
            asked += 1
            return f"answer {asked}"

        return toolfiles.remembered(memory, toolfiles.fingerprint(work, ["cc", "rustc"]), ask)

    assert look() == "answer 1" and look() == "answer 2", "without its folder nothing is remembered"
    memory.parent.mkdir()
    assert look() == "answer 3" and look() == "answer 3"
    answers = ["answer 3"]

    def changed(what: str) -> None:
        answers.append(look())
        assert answers[-1] != answers[-2], what
        assert look() == answers[-1], what

    cc.write_text("#!/bin/sh\necho another\n")
    changed("other bytes of another size")
    os.utime(cc, ns=(1, 1))
    changed("another time")
    compiler(cc.with_name("new"), "another").replace(cc)
    changed("another file of the same name")
    compiler(cc.with_name("rustc"), "a proxy")
    changed("a tool that was not there")
    compiler(home / "toolchains" / "nightly" / "bin" / "rustc", "2")
    changed("another installed toolchain")
    rustc.write_text("#!/bin/sh\necho 1.1\n")
    changed("an updated toolchain")
    (home / "settings.toml").write_text("default_toolchain = 'nightly'")
    changed("another default")
    (work.parent / "rust-toolchain.toml").write_text("[toolchain]\nchannel = '1'\n")
    changed("a choice made in a folder above")
    monkeypatch.setenv("RUSTUP_TOOLCHAIN", "nightly")
    changed("a choice made by a variable")
    compiler(tmp_path / "first" / "cc", "first")
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'bin'}")
    changed("another one first on PATH")
    for damage in ("", "{", "[]", '{"files": 1}', '{"toolchain": "typed"}'):
        memory.write_text(damage)
        changed(f"a damaged memory: {damage}")
