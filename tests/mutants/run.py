"""`make mutants`: remove rule lines drawn at random, one at a time, and see whether a test turns red.

    tests/mutants/run.py [--seed N] [--count N] [--only FILE ...] [--json]

Each change is made in a copy of the repository in the temporary folder; the working tree is only read, so
that killing this leaves it as it was. Exit code: 0 each removal was noticed, 1 at least one survived, 2
wrong use, 3 a test is red without any change (nothing can be learned then).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sites import Site, sites, without

TOP = Path(__file__).resolve().parents[2]
LIMIT_S = 900.0
_RED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)

# Room -> the tests that hold its rules, quick ones first. A room is a file or a folder below TOP.
HERE = "tests/python/cartlab/test_"
ROOMS: dict[str, tuple[str, ...]] = {
    "python/cartlab/decide.py": ("decide", "verify"),
    "python/cartlab/ledger": (
        "ledger",
        "glance",
        "verify",
        "exchange",
        "company",
        "round",
        "round_records",
        "cli_records",
        "cli_edges",
    ),
    "python/cartlab/measure": (
        "clocks",
        "contention",
        "witnesses",
        "commands",
        "measure",
        "layouts",
        "adversary",
    ),
    "python/cartlab/sources": ("sources", "layouts", "checks", "adversary", "cli_edges"),
}


@dataclass(frozen=True)
class Mutant:
    """A rule of a file, removed; killed_by: the test that noticed, None for a survivor."""

    file: str
    line: int
    what: str
    seconds: float = 0.0
    killed_by: str | None = None


class AlreadyRed(Exception):
    """A test fails without any change."""


def draw(top: Path, rooms: Mapping[str, Sequence[str]], seed: int, count: int) -> list[tuple[str, Site]]:
    """`count` sites of the rooms' files, each site as likely as any other."""
    every = [
        (path.relative_to(top).as_posix(), site)
        for room in rooms
        for path in sorted([top / room] if (top / room).is_file() else (top / room).rglob("*.py"))
        for site in sites(path.read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def tests_of(file: str, rooms: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The test files of the room that the file lies in."""
    return next(tests for room, tests in rooms.items() if file == room or file.startswith(room + "/"))


class Copy:
    """The repository's files in a folder of their own, and what pytest says there."""

    def __init__(self, top: Path, folder: Path) -> None:
        self.path = folder / "copy"
        self._green: set[str] = set()
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=top, capture_output=True, check=True
        )
        for name in os.fsdecode(listed.stdout).split("\0"):
            if name and (top / name).is_file():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(top / name, self.path / name, follow_symlinks=False)

    def red(self, tests: Sequence[str]) -> str | None:
        """The first test that fails, None if all pass. Hanging is failing."""
        env = {**os.environ, "PYTHONPATH": str(self.path / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider", *tests],
                cwd=self.path,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                return f"no end within {LIMIT_S:g} s"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            out.seek(0)
            text = out.read()
        if code == 0:
            return None
        found = _RED.search(text)
        return found[1] if found else f"pytest ended with {code}: {text[-300:]}"

    def try_one(self, file: str, site: Site, tests: Sequence[str]) -> Mutant:
        """Remove the rule, run the tests, put it back."""
        path, start = self.path / file, time.monotonic()
        source = path.read_text(encoding="utf-8")
        try:
            path.write_text(without(source, site), encoding="utf-8")
            killer = self.red(tests)
        finally:
            path.write_text(source, encoding="utf-8")
        if killer is not None:
            self._must_be_green(killer.partition("::")[0])
        return Mutant(file, site.line, site.what, round(time.monotonic() - start, 1), killer)

    def _must_be_green(self, test: str) -> None:
        if test in self._green or not (self.path / test).is_file():
            return
        red = self.red([test])
        if red is not None:
            raise AlreadyRed(red)
        self._green.add(test)


def run(
    top: Path, rooms: Mapping[str, Sequence[str]], seed: int, count: int, quiet: bool = False
) -> list[Mutant]:
    """Draw, try each, tell how it went on stderr. AlreadyRed where a test fails unchanged."""
    done = []
    drawn = draw(top, rooms, seed, count)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(top, Path(folder))
        for number, (file, site) in enumerate(drawn, 1):
            one = copy.try_one(file, site, tests_of(file, rooms))
            done.append(one)
            if not quiet:
                end = one.killed_by or "SURVIVED"
                print(
                    f"{number}/{len(drawn)} {file}:{one.line} {one.what}\n    {end} ({one.seconds:.0f} s)",
                    file=sys.stderr,
                    flush=True,
                )
    return done


def main(argv: Sequence[str] | None = None) -> int:
    """The command; see the top of the file."""
    parser = argparse.ArgumentParser(description="Remove rules at random and see whether a test notices.")
    parser.add_argument("--seed", type=int, default=None, help="which lines are drawn (default: new ones)")
    parser.add_argument("--count", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--only", action="append", metavar="FILE", help="draw from this file or folder alone")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    given = parser.parse_args(argv)
    rooms = {room: [f"{HERE}{name}.py" for name in names] for room, names in ROOMS.items()}
    if given.only:
        rooms = {only: list(tests_of(only, rooms)) for only in given.only if _in_a_room(only, parser)}
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    try:
        done = run(TOP, rooms, seed, given.count)
    except AlreadyRed as red:
        print(f"{red} fails without any change: make the tests pass first", file=sys.stderr)
        return 3
    left = [one for one in done if one.killed_by is None]
    if given.json:
        print(json.dumps({"seed": seed, "survivors": len(left), "mutants": [asdict(one) for one in done]}))
    else:
        for one in left:
            print(f"survived: {one.file}:{one.line} {one.what}")
        print(f"seed {seed}: {len(done) - len(left)} of {len(done)} removed rules turned a test red")
    return 1 if left else 0


def _in_a_room(only: str, parser: argparse.ArgumentParser) -> bool:
    inside = any(only == room or only.startswith(room + "/") for room in ROOMS)
    if not inside or not (TOP / only).exists():
        parser.error(f"--only takes a path below {', '.join(ROOMS)}; found {only}")
    return True


if __name__ == "__main__":
    sys.exit(main())
