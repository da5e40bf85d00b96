"""The command line of scripts/benchmark_sps.py: environment steps per second of the canonical workload.

The workload's params come from autoresearch.toml, the frozen policy and the environment from the adapter that
cartlab also measures with, so that what is optimised by eye is what is judged. Only the working tree's build
is timed; nothing is recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rollcart
from rollcart import _native, games
from rollcart.bench import sps

if TYPE_CHECKING:
    from rollcart.bench.retro_peer import Workload


# Buttons of consoles: START, and what random play holds (A B, the directions and some pairs of them).
START = 8
PRESSED = (0, 1, 2, 16, 32, 64, 128, 129, 65, 130, 66)
FRAMES_TO_START = 300
FRAMES_BETWEEN_STATES = 240


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="scripts/benchmark_sps.py",
        description="Environment steps per second of the working tree's build. For learning, never evidence.",
    )
    out.add_argument("--lanes", type=int, help="lanes (default: the workload's, 16)")
    out.add_argument("--threads", type=int, help="threads (default: the CPUs that this process may use)")
    out.add_argument("--game", help="a Stable Retro game's name (default: the workload's, the bundled game)")
    out.add_argument(
        "--rom-path",
        metavar="PATH",
        help="another cartridge: lanes begin at four points that random play from power-on comes to",
    )
    out.add_argument("--seconds", type=float, default=2.0, help="seconds a turn (default 2)")
    out.add_argument("--repeats", type=int, default=5, help="turns of each side (default 5)")
    out.add_argument("--seed", type=int, default=1, help="seed of lanes and policy (default 1)")
    out.add_argument("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    out.add_argument(
        "--keep",
        action="store_true",
        help="hold the results of 32 steps, as cartlab's slices do; else each goes before the next step",
    )
    out.add_argument(
        "--stable-retro-baseline",
        action="store_true",
        help="take turns with stable-retro, tuned as an expert would, and report the ratio",
    )
    return out


def main(argv: list[str], adapter: Any, params: dict[str, Any], sources: Path) -> int:
    """Run and print; the exit code. `adapter` is scripts/workloads/nes_batch.py as a module."""
    args = parser().parse_args(argv)
    if sps.stale_module(Path(str(_native.__file__)), sources):
        print(f"the native module is older than its sources; run: {sps.REBUILD}", file=sys.stderr)
        return 23
    params = dict(params)
    if args.lanes:
        params["num_envs"] = args.lanes
    if args.threads:
        params["num_threads"] = args.threads
    if args.game:
        params.update(game=args.game, states=())
    with contextlib.ExitStack() as until_the_end:
        if args.rom_path:
            folder = until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="rollcart-states-"))
            if args.stable_retro_baseline:
                params.update(wrapped_game(Path(args.rom_path), Path(folder), args.seed))
            else:
                write_states(args.rom_path, Path(folder), args.seed)
                params.update(rom_path=args.rom_path, states=(), state_dir=folder)
        return run(args, adapter, params)


def run(args: argparse.Namespace, adapter: Any, params: dict[str, Any]) -> int:
    """Take the turns and print the report; the exit code."""
    sides = [rollcart_side(adapter, params, args.seed, args.keep)]
    try:
        if args.stable_retro_baseline:
            print("trying arrangements of stable-retro's processes", file=sys.stderr)
            sides.append(retro_side(adapter, params, args.seed, args.seconds))
        rates = sps.in_turns(sides, args.seconds, args.repeats)
    finally:
        for side in sides:
            side.close()
    result = sps.report(sides, rates, params)
    print(json.dumps(result) if args.json else "\n".join(sps.lines(result)))
    if args.json:
        print(sps.EVIDENCE, file=sys.stderr)
    return 0


def write_states(rom_path: str, folder: Path, seed: int) -> None:
    """Four states of a game whose own are not known: START is tapped for five seconds, then random buttons
    are held, a state every four seconds.
    """
    console = rollcart.Console(rom_path)
    states = random_play(seed, lambda buttons: console.step(buttons), console.save)
    for number, state in enumerate(states):
        (folder / f"{number}.state").write_bytes(state)


def random_play(seed: int, step: Callable[[int], object], save: Callable[[], bytes]) -> list[bytes]:
    """The four states, of a console that `step` lets run a frame with these buttons."""
    rng = random.Random(seed)
    for frame in range(FRAMES_TO_START):
        step(START if frame % 32 < 4 and frame > 60 else 0)
    states = []
    for _ in range(4):
        for _ in range(FRAMES_BETWEEN_STATES // 8):
            buttons = rng.choice(PRESSED)
            for _ in range(8):
                step(buttons)
        states.append(save())
    return states


def wrapped_game(rom: Path, into: Path, seed: int) -> dict[str, Any]:
    """The ROM as a game's folder without variables, with states that stable-retro's core saved, so that both
    sides begin with the same; the params that name it.
    """
    from rollcart.bench.retro_peer import game_folder, played

    folder = game_folder(rom, into)
    names = []
    for number, state in enumerate(random_play(seed, *played(folder / "rom.nes"))):
        (folder / f"State{number}.state").write_bytes(gzip.compress(state, 9, mtime=0))
        names.append(f"State{number}")
    return {"game": folder.name, "rom_path": str(folder / "rom.nes"), "states": tuple(names)}


def rollcart_side(adapter: Any, params: dict[str, Any], seed: int, keep: bool) -> sps.Side:
    """The working tree's environment under the frozen policy.

    keep: hold all results of a slice, as cartlab does to hash them (14 MB of observations at 16 lanes, which
    no processor's nearest caches hold). Otherwise each step's results go before the next step, as the peer's
    are overwritten.
    """
    session = adapter.open({"params": params}, seed, None)
    policy = adapter.Policy(session.lanes, seed)
    drawn: list[Any] = []
    kept: list[Any] = []

    def prepare(steps: int) -> None:
        kept.clear()
        session.prepare(0)
        drawn[:] = policy.draw(steps)

    def run() -> None:
        step = session.env.step
        if keep:
            for actions in drawn:
                kept.append(step(actions))
        else:
            for actions in drawn:
                step(actions)

    threads = params.get("num_threads") or "all usable"
    note = f"{params['num_envs']} lanes, {threads} threads" + (", results kept" if keep else "")
    return sps.Side("rollcart", session.lanes, prepare, run, session.close, note, session.env.num_threads)


def retro_side(adapter: Any, params: dict[str, Any], seed: int, seconds: float) -> sps.Side:
    """Stable-retro with the same lanes, states, policy and limits, in its fastest arrangement."""
    from rollcart.bench.retro_peer import RetroVec, fastest, usable_cpus

    work = peer_workload(adapter, params, seed)
    policy = adapter.Policy(work.lanes, seed)
    best, tried = fastest(work, min(seconds, 2.0), policy.draw(512))
    peer = RetroVec(work, best)
    drawn: list[Any] = []

    def prepare(steps: int) -> None:
        drawn[:] = policy.draw(steps)

    def run() -> None:
        for actions in drawn:
            peer.step(actions)

    rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in tried.items())
    note = f"{best} (tried: {rates})"
    cores = min(best.workers, len(usable_cpus()))
    return sps.Side("stable-retro", work.lanes, prepare, run, peer.close, note, cores)


def peer_workload(adapter: Any, params: dict[str, Any], seed: int) -> Workload:
    """The canonical workload in stable-retro's terms."""
    from rollcart.bench.retro_peer import Workload

    if params.get("rom_path"):
        folder = Path(params["rom_path"]).parent
    else:
        folder = games.find(params["game"]).folders[0]
    return Workload(
        data_dir=str(folder.parent),
        game=folder.name,
        states=tuple(adapter.states_of(params) or [games.find(params["game"]).default_state(1)]),
        actions=tuple(tuple(names) for names in adapter.Policy(1, seed).actions),
        lanes=params["num_envs"],
        frame_skip=params["frame_skip"],
        stack=params["frame_stack"],
        size=params["resize"][0],
        masked_rows=params["crop"][0],
        max_episode_steps=params.get("max_episode_steps") or 0,
        noop_max=params.get("noop_reset_max") or 0,
        seed=seed,
    )
