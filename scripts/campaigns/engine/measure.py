#!/usr/bin/env python3
"""How fast this tree's engine is against a fixed build: the evaluation of the engine's campaign.

    measure.py --cache DIR [--openings K] [--slices N] [--milliseconds M]

Run at the top of a tree. It builds the tree's native module into the cache (once a content of its sources),
compares its outputs with the reference build's, and times both in turns of a slice each, through the slice
server. It prints `METRIC speed=R`: what the reference takes by what this tree takes, the median over slices
and then over openings. Where a process's memory lies makes it some per cent faster or slower for as long as
it lives, so more processes say more than longer ones. An exit code other than 0 means that there is no
number, and stderr says why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import pwd
import shutil
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path.cwd() / "python"))

from cartlab import config
from cartlab.measure.worker import Worker
from cartlab.model import Build, Ref, Workload
from cartlab.pipeline.inputs import workload_of
from cartlab.pipeline.request import Runner

INPUTS = ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "src", "python/rollcart")
VERIFY_STEPS = 120
REFERENCE = "reference.json"


def digest_of_sources(top: Path) -> str:
    """What decides how the build comes out."""
    total = hashlib.sha256()
    for name in INPUTS:
        place = top / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place] if place.is_file() else []:
            if path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts:
                total.update(f"{path.relative_to(top)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def build(top: Path, cache: Path) -> Build:
    """The tree's build, from the cache where it is there. The stamp is written last."""
    key = digest_of_sources(top)
    place = cache / "builds" / key
    stamp, native = place / "done.json", place / "rollcart" / "_native.abi3.so"
    if not stamp.is_file():
        home = pwd.getpwuid(os.getuid()).pw_dir
        environ = {
            "CARGO_HOME": f"{home}/.cargo",
            "RUSTUP_HOME": f"{home}/.rustup",
            **os.environ,
            "CARGO_TARGET_DIR": str(cache / "target"),
            "PYO3_PYTHON": sys.executable,
            "PYO3_BUILD_EXTENSION_MODULE": "1",
        }
        words = "cargo rustc --release --locked --offline --lib --crate-type cdylib --features python --quiet"
        subprocess.run(words.split(), cwd=top, env=environ, check=True)
        shutil.rmtree(place, ignore_errors=True)
        ignore = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(top / "python" / "rollcart", place / "rollcart", ignore=ignore)
        shutil.copyfile(cache / "target" / "release" / "librollcart.so", native)
        stamp.write_text(json.dumps({"sha256": hashlib.sha256(native.read_bytes()).hexdigest()}))
    digest = json.loads(stamp.read_text())["sha256"]
    return Build(Ref(key[:12], key, key), key, str(place), "rollcart/_native.abi3.so", digest, 0.0, True)


def workload(top: Path) -> Workload:
    """The repository's default workload with the bundled game."""
    return workload_of(config.load(top), top, Runner(), {})[0]


def outputs(worker: Worker) -> str:
    """The digest of what it gives over a fixed stretch."""
    return str(worker.ask("verify", steps=VERIFY_STEPS)["digest"])


def speed(own: Worker, other: Worker, slices: int, milliseconds: float) -> float:
    """The median of t_other / t_own over slices taken in turns, the first of each pair alternating."""
    steps = 8
    for _ in range(12):  # as many steps as fill a slice, and warm
        taken = max(own.run(steps)[0], 1)
        other.run(steps)
        steps = max(1, round(steps * min(4.0, milliseconds * 1e6 / taken)))
    ratios = []
    for at in range(slices):
        if at % 2:
            mine, theirs = own.run(steps)[0], other.run(steps)[0]
        else:
            theirs, mine = other.run(steps)[0], own.run(steps)[0]
        ratios.append(math.log(theirs / mine))
    return math.exp(statistics.median(ratios))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, metavar="DIR", help="builds; outside the tree")
    parser.add_argument("--openings", type=int, default=5, metavar="K", help="pairs of processes (5)")
    parser.add_argument("--slices", type=int, default=40, metavar="N", help="slices a side and opening (40)")
    parser.add_argument("--milliseconds", type=float, default=20.0, metavar="M", help="of a slice (20)")
    parser.add_argument("--build-only", action="store_true", help="build into the cache, measure nothing")
    parser.add_argument("--reference", action="store_true", help="make this tree's build the reference")
    space = parser.parse_args()
    top, seed = Path.cwd(), int(os.environ.get("AR_SEED", "1"))
    if space.build_only:
        print(f"built: {build(top, space.cache).build_id[:12]}")
        return 0
    plan, adapter = workload(top), top / "scripts" / "workloads" / "nes_batch.py"
    mine = build(top, space.cache)
    note = space.cache / REFERENCE
    if space.reference:
        with Worker("reference", mine, adapter) as worker:
            worker.open(plan, 1, 1)
            note.write_text(json.dumps({"build": mine.to_json(), "outputs": outputs(worker)}))
        print(f"reference: {mine.build_id[:12]}")
        return 0
    if not note.is_file():
        print(f"expected {note}; make it with --reference in the baseline's tree", file=sys.stderr)
        return 3
    told = json.loads(note.read_text())
    with Worker("tree", mine, adapter) as own:
        own.open(plan, 1, 1)
        if outputs(own) != told["outputs"]:
            print("behaviour changed: its outputs are not the reference's", file=sys.stderr)
            return 12
    reference = Build.from_json(told["build"])
    found = []
    for at in range(space.openings):
        with ExitStack() as stack:
            sides = [("tree", mine), ("reference", reference)]
            opened = {}
            for name, build_of in sides if at % 2 else reversed(sides):
                worker = stack.enter_context(Worker(name, build_of, adapter))
                worker.open(plan, seed, 1)
                opened[name] = worker
            found.append(speed(opened["tree"], opened["reference"], space.slices, space.milliseconds))
    print(f"METRIC speed={statistics.median(found):.5f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
