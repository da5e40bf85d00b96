"""The pipeline's laboratory without compilers, workers or git: blocks of a chosen value in no time.

    lab = instant_lab(tmp_path, y=0.2)      every block says that the candidate is exp(0.2) times as fast
    main(["accept", "base", "better"], repository=..., lab=lab)

Revisions are "base" and "better" (HEAD is "base"), or their made-up commit ids. The ledger, the files, the
decisions and the command line are the real ones.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger_runs import WORKLOAD, a_block, ref

from cartlab import checks, config
from cartlab.errors import BadRef
from cartlab.measure.equality import Equality
from cartlab.model import Build, Ref
from cartlab.pipeline.lab import Lab, no_count, no_lease

NAMES = {"HEAD": "base", "base": "base", "better": "better"}


def resolve(_repo: Path, text: str) -> Ref:
    for name in ("base", "better"):
        made = ref(name)
        if NAMES.get(text) == name or (len(text) >= 7 and made.commit.startswith(text)):
            return Ref(text, made.commit, made.tree)
    raise BadRef(f"no revision {text!r}")


def instant_lab(folder: Path, y: float = 0.2, check_passes: Callable[[], bool] = lambda: True) -> Lab:
    """A laboratory whose files (a build log) lie in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    log.write_text("built\n")
    numbers = itertools.count()

    def build(_config: Any, built: Ref, _root: Path, **_: Any) -> Build:
        return Build(built, built.tree[:32], str(folder), "engine.so", "a" * 64, 0.0, True)

    def run_checks(_config: Any, surfaces: Any, *, quick: bool, ref: Ref | None = None, **_: Any) -> Any:
        passed = check_passes()
        done = [
            checks.Check(one.name, command, passed, 0 if passed else 1, 0.0, "")
            for one in surfaces
            for command in (one.quick if quick else one.full)
        ]
        tree = ref.tree if ref else resolve(folder, "HEAD").tree
        names = tuple(one.name for one in surfaces)
        return checks.CheckRun(tree, ref.commit if ref else None, quick, names, tuple(done))

    return Lab(
        load_config=config.load,
        resolve=resolve,
        dirty=lambda _repo: [],
        compliance=lambda *_: [],
        patch_id=lambda _repo, _base, cand: cand.tree,
        build=build,
        check_build=lambda _build: None,
        build_log=lambda _build: log,
        verify_equal=lambda *_: Equality(True, 20, 5, 1, "d" * 64, "d" * 64),
        run_block=lambda plan, index, coin, base, cand, repo: a_block(index, y + 0.001 * (index % 3)),
        workload=lambda _config, _repo, _runner: (WORKLOAD, f"workload: {WORKLOAD.name}"),
        statements=lambda _repo, _cand: {"Mechanism": "less work", "Falsified-by": "equal instructions"},
        changed=lambda *_: ["engine.c"],
        surfaces=checks.choose,
        run_checks=run_checks,
        is_ancestor=lambda *_: True,
        strangers=lambda *_: [],
        protected=lambda *_: [],
        harness_hash=lambda *_: "h" * 64,
        host_class=lambda: "x86-2",
        coin=lambda: 0,
        attempt_id=lambda command, _cand: f"{command.replace(' ', '-')}-{os.getpid()}-{next(numbers)}",
        lease=no_lease,
        instructions=no_count,
    )
