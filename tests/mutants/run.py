"""`make mutants`: remove rule lines drawn at random, one at a time, and see whether a test turns red.

    tests/mutants/run.py [--seed N] [--count N] [--only FILE ...] [--json]

Each change is made in a copy of the repository in the temporary folder; the working tree is only read, so
that killing this leaves it as it was. A Rust file's copy is built anew, quickly and with checks, in
target/mutants; a change that does not compile is passed over and another one drawn. Exit code: 0 each
removal was noticed, 1 at least one survived, 2 wrong use, 3 a test is red without any change (nothing can be
learned then), 4 the copy does not build without any change.
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

from rooms import EQUIVALENT, ROOMS, room_of
from rust_sites import rust_sites
from sites import Site, sites, without

TOP = Path(__file__).resolve().parents[2]
LIMIT_S = 900.0
# One test: longer than any takes on a busy machine.
HANGS_S = 240.0
_CARGO = ("cargo", "--offline", "--quiet")
_RED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)


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


class DoesNotBuild(Exception):
    """The native module cannot be built."""


def draw(top: Path, rooms: Mapping[str, Sequence[str]], seed: int, count: int) -> list[tuple[str, Site]]:
    """`count` sites of the rooms' files, each site as likely as any other."""
    every = [
        (path.relative_to(top).as_posix(), site)
        for path in sorted({path for room in rooms for path in _sources(top / room)})
        for site in (rust_sites if path.suffix == ".rs" else sites)(path.read_text(encoding="utf-8"))
        if (path.relative_to(top).as_posix(), site.what) not in EQUIVALENT
    ]
    random.Random(seed).shuffle(every)
    return every[:count]


def _sources(room: Path) -> list[Path]:
    if room.is_file():
        return [room]
    # A file of that name has unit tests alone.
    return [path for path in room.rglob("*") if path.suffix in (".py", ".rs") and path.name != "tests.rs"]


def tests_of(file: str, rooms: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The tests of the first room that the file lies in."""
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
        self._target = top / "target" / "mutants"
        # Python's rooms are tried with the module that the working tree has.
        for module in (top / "python" / "rollcart").glob("_native*.so"):
            shutil.copy2(module, self.path / "python" / "rollcart" / module.name)

    def red(self, tests: Sequence[str]) -> str | None:
        """The first test that fails, None if all pass. Hanging is failing."""
        units = [test.removeprefix("cargo:") for test in tests if test.startswith("cargo:")]
        files = [test for test in tests if not test.startswith("cargo:")]
        for unit in units:
            code, text = self._run([*_CARGO, "test", "--lib", unit])
            if code != 0:
                found = re.search(r"^test (\S+) \.\.\. FAILED", text, re.M)
                return f"cargo:{found[1]}" if found else f"cargo test ended with {code}: {text[-300:]}"
        if not files:
            return None
        pytest = [sys.executable, "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider"]
        pytest += ["-o", f"timeout={HANGS_S:g}"]
        code, text = self._run([*pytest, *files])
        if code == 0:
            return None
        found = _RED.search(text)
        return found[1] if found else f"pytest ended with {code}: {text[-300:]}"

    def build(self) -> bool:
        """Builds the copy's native module; False where it does not compile."""
        code, _ = self._run([*_CARGO, "build", "--lib", "--features", "python"])
        if code != 0:
            return False
        suffix = ".dylib" if sys.platform == "darwin" else ".so"
        built = self._target / "debug" / f"librollcart{suffix}"
        # Replaced, not written over: a process may still hold the old one.
        for old in (self.path / "python" / "rollcart").glob("_native*.so"):
            old.unlink()
        shutil.copy2(built, self.path / "python" / "rollcart" / "_native.abi3.so")
        return True

    def _run(self, command: Sequence[str]) -> tuple[int, str]:
        env = {
            **os.environ,
            "PYTHONPATH": str(self.path / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYO3_PYTHON": sys.executable,
            "CARGO_TARGET_DIR": str(self._target),
            # As the module's, so that both share what they depend on.
            "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
        }
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(
                command,
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
                return 124, f"no end within {LIMIT_S:g} s"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            out.seek(0)
            return code, out.read()

    def try_one(self, file: str, site: Site, tests: Sequence[str]) -> Mutant | None:
        """Remove the rule, run the tests, put it back; None for a change that does not compile."""
        path, start = self.path / file, time.monotonic()
        source = path.read_text(encoding="utf-8")
        rust = file.endswith(".rs")
        try:
            path.write_text(without(source, site), encoding="utf-8")
            if rust and not self.build():
                return None
            killer = self.red(tests)
        finally:
            path.write_text(source, encoding="utf-8")
        if killer is not None:
            self._must_be_green(killer if killer.startswith("cargo:") else killer.partition("::")[0], rust)
        return Mutant(file, site.line, site.what, round(time.monotonic() - start, 1), killer)

    def _must_be_green(self, test: str, rust: bool) -> None:
        if test in self._green or not (test.startswith("cargo:") or (self.path / test).is_file()):
            return
        if rust and not self.build():
            raise DoesNotBuild
        red = self.red([test])
        if red is not None:
            raise AlreadyRed(red)
        self._green.add(test)


def run(
    top: Path, rooms: Mapping[str, Sequence[str]], seed: int, count: int, quiet: bool = False
) -> list[Mutant]:
    """Draw, try each, tell how it went on stderr. AlreadyRed where a test fails unchanged."""
    done: list[Mutant] = []
    drawn = draw(top, rooms, seed, sys.maxsize)
    count = min(count, len(drawn))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(top, Path(folder))
        if any(file.endswith(".rs") for file, _ in drawn):
            if not quiet:
                print("building the copy without any change", file=sys.stderr, flush=True)
            if not copy.build():
                raise DoesNotBuild
        for file, site in drawn:
            if len(done) == count:
                break
            one = copy.try_one(file, site, tests_of(file, rooms))
            if one is None:
                continue
            done.append(one)
            if not quiet:
                end = one.killed_by or "SURVIVED"
                print(
                    f"{len(done)}/{count} {file}:{one.line} {one.what}\n    {end} ({one.seconds:.0f} s)",
                    file=sys.stderr,
                    flush=True,
                )
    return done


def main(argv: Sequence[str] | None = None) -> int:
    """The command; see the top of the file."""
    # Ended from outside it takes its tests and its copy with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parser = argparse.ArgumentParser(description="Remove rules at random and see whether a test notices.")
    parser.add_argument("--seed", type=int, default=None, help="which lines are drawn (default: new ones)")
    parser.add_argument("--count", type=int, default=20, help="how many (default 20)")
    parser.add_argument(
        "--only", action="append", metavar="FILE", help="draw from this file or folder alone (again for more)"
    )
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    given = parser.parse_args(argv)
    rooms: Mapping[str, Sequence[str]] = ROOMS
    if given.only:
        # A folder of which some files have rows of their own keeps these.
        below = {
            room: tests
            for room, tests in ROOMS.items()
            if room.startswith(tuple(f"{only}/" for only in given.only))
        }
        rooms = below | {only: tests_of(only, ROOMS) for only in given.only if _in_a_room(only, parser)}
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    try:
        done = run(TOP, rooms, seed, given.count)
    except AlreadyRed as red:
        print(f"{red} fails without any change: make the tests pass first", file=sys.stderr)
        return 3
    except DoesNotBuild:
        print("the native module does not build without any change: see `make build`", file=sys.stderr)
        return 4
    left = [one for one in done if one.killed_by is None]
    if given.json:
        print(json.dumps({"seed": seed, "survivors": len(left), "mutants": [asdict(one) for one in done]}))
    else:
        for one in left:
            print(f"survived: {one.file}:{one.line} {one.what}")
        print(f"seed {seed}: {len(done) - len(left)} of {len(done)} removed rules turned a test red")
    return 1 if left else 0


def _in_a_room(only: str, parser: argparse.ArgumentParser) -> bool:
    if room_of(only) is None or not (TOP / only).exists():
        parser.error(f"--only takes a path below {', '.join(ROOMS)}; found {only}")
    return True


if __name__ == "__main__":
    sys.exit(main())
