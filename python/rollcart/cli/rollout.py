"""`rollout`: how fast PPO plays and trains, and where the time goes; `rollcart.ppo.benchmark` measures."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollcart.cli import ppo_options
from rollcart.cli.answer import USAGE, Answer, CommandError
from rollcart.cli.talk import Talk
from rollcart.words import counted

if TYPE_CHECKING:
    from rollcart.ppo.settings import Settings

TRAINED = Path(__file__).parents[1] / "data" / "policies" / "cart-runner.npz"
_SWEPT = ("lanes", "threads", "obs")


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lanes", metavar="N,N", default="16", help="lanes; several are swept (default 16)")
    parser.add_argument(
        "--threads", metavar="N,N", help="environment threads; several are swept (default: all usable CPUs)"
    )
    parser.add_argument("--obs", metavar="KIND,KIND", default="ram", help="ram, image or both (default ram)")
    parser.add_argument(
        "--policy",
        metavar="P,P",
        default="initial,trained",
        help="initial, trained (ours, of the bundled game from RAM) or the file of a checkpoint",
    )
    parser.add_argument(
        "--iterations", type=int, default=8, metavar="N", help="rollouts of each measurement (default 8)"
    )
    parser.add_argument(
        "--policy-threads",
        choices=("one", "all"),
        default="all",
        help="threads of the network's operations (default all)",
    )
    parser.add_argument(
        "--peer",
        choices=("stable-retro",),
        help="the same with stable-retro too (extra peers; needs --obs image)",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="ray: the rollouts in actors of Ray's (extra ray), beside one in this process",
    )
    parser.add_argument(
        "--actors", metavar="N,N", default="1,2", help="with --engine ray: how many actors (default 1,2)"
    )
    ppo_options.declare(parser, without=(*_SWEPT, "steps"))


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    if options.policy_threads == "one":
        _one_policy_thread()
    ppo_options.need_jax()
    if options.iterations < 1:
        raise CommandError(f"--iterations: expected a number from 1 up, found {options.iterations}", USAGE)
    if options.engine != "local":
        return _distributed(options, talk)
    from rollcart.ppo import benchmark

    cells = [_measured(options, cell, talk) for cell in _cells(options)]
    ratios = _ratios(cells)
    document = {"evidence": "learning", "host": benchmark.host(), "cells": cells, "against_peer": ratios}
    talk.say(_table(cells))
    for ratio in ratios:
        talk.say(
            f"{counted(int(ratio['lanes']), 'lane')}, image: rollouts {ratio['rollout']:.2f} times as fast "
            f"as over stable-retro, training {ratio['training']:.2f} times; share of the environment in a "
            f"rollout {ratio['env_share_before']:.1%} there, {ratio['env_share_after']:.1%} here"
        )
    talk.say("evidence: learning")
    return Answer(document)


def _distributed(options: argparse.Namespace, talk: Talk) -> Answer:
    """Rollouts alone, in actors: each cell in this process first, then in Ray's."""
    from rollcart.ppo import actors

    if options.peer:
        raise CommandError("--engine ray measures rollcart alone: leave --peer out", USAGE)
    counts = _numbers("--actors", options.actors)
    # Before JAX: Ray starts its processes by a fork, which JAX's threads do not survive.
    remote = actors.ENGINES[options.engine]()
    from rollcart.ppo import benchmark
    from rollcart.ppo.trainer import make_env

    cells = []
    for cell in _cells(options):
        # An actor has one thread unless told otherwise: all of them share the machine.
        cell["settings"] = replace(cell["settings"], threads=cell["settings"].threads or 1)
        settings, params, see = _policy_of(cell)
        env = make_env(settings, options.rom_path)
        weights, see = benchmark.host_policy(settings, env, params, see)
        rows = []
        for engine, numbers in ((actors.Local(), [1]), (remote, counts)):
            for count in numbers:
                progress = talk.progress
                rows.append(
                    actors.measure(engine, settings, weights, see, count, options.iterations, progress)
                )
        rows = actors.with_efficiency(rows)
        settings_told = settings.as_dict()
        cells.append({"policy": cell["policy"], "settings": settings_told, "engines": rows})
        talk.say(_engines_table(cell, rows))
    talk.say("evidence: learning")
    return Answer({"evidence": "learning", "host": benchmark.host(), "cells": cells})


def _engines_table(cell: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    settings = cell["settings"]
    lanes = f"{counted(settings.lanes, 'lane')} and {counted(settings.threads, 'thread')} an actor"
    lines = [
        f"{cell['policy']} policy, {settings.obs}, {lanes}",
        f"{'engine':8}{'actors':>7}{'steps/s':>10}{'an actor':>10}{'efficiency':>12}{'store MiB/s':>13}"
        f"{'weights ms':>12}{'episodes':>10}",
    ]
    for row in rows:
        efficiency = "-" if row["efficiency"] is None else f"{row['efficiency']:.1%}"
        lines.append(
            f"{row['engine']:8}{row['actors']:>7}{row['steps_per_second']:>10,.0f}{row['per_actor']:>10,.0f}"
            f"{efficiency:>12}{row['object_bytes_per_second'] / 2**20:>13.1f}{row['weight_sync_ms']:>12.2f}"
            f"{row['episodes']:>10}"
        )
    return "\n".join(lines)


def _policy_of(cell: dict[str, Any]) -> tuple[Settings, Any, Any]:
    """Settings, weights and features of a cell's policy; the initial one has none yet."""
    from rollcart.ppo import checkpoint

    settings: Settings = cell["settings"]
    if cell["policy"] == "initial":
        return settings, None, None
    saved = checkpoint.load(TRAINED if cell["policy"] == "trained" else cell["policy"])
    settings = replace(settings, hidden=saved.settings.hidden, ram_bytes=saved.settings.ram_bytes)
    return settings, saved.params, saved.see


def _one_policy_thread() -> None:
    if "jax" in sys.modules:
        raise CommandError("--policy-threads one has to come before JAX is imported in this process", USAGE)
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def _cells(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every combination of what is swept, in order; each with its settings."""
    from rollcart.ppo.settings import Settings

    base = replace(Settings(), **ppo_options.chosen(options, _SWEPT))
    if options.peer and "image" not in options.obs.split(","):
        raise CommandError("--peer stable-retro has pictures alone: add --obs image", USAGE)
    out = []
    for obs in options.obs.split(","):
        for lanes in _numbers("--lanes", options.lanes):
            for threads in _numbers("--threads", options.threads) if options.threads else [None]:
                settings = replace(base, obs=obs, lanes=lanes, threads=threads)
                for policy in options.policy.split(","):
                    if policy == "trained" and (obs != "ram" or settings.game != Settings().game):
                        continue
                    out.append({"side": "rollcart", "policy": policy, "settings": settings})
            if options.peer and obs == "image":
                settings = replace(base, obs=obs, lanes=lanes)
                out.append({"side": options.peer, "policy": "initial", "settings": settings})
    if not out:
        raise CommandError(
            "nothing to measure: the trained policy reads the bundled game's RAM; add --policy initial", USAGE
        )
    return out


def _numbers(flag: str, text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise CommandError(
            f"{flag}: expected numbers with commas between them, found {text!r}", USAGE
        ) from None


def _measured(options: argparse.Namespace, cell: dict[str, Any], talk: Talk) -> dict[str, Any]:
    from rollcart.ppo import benchmark, peer
    from rollcart.ppo.trainer import make_env

    settings, params, see = _policy_of(cell)
    note = ""
    if cell["side"] == "rollcart":
        env = make_env(settings, options.rom_path)
        settings = replace(settings, threads=env.num_threads)
    else:
        talk.progress("trying arrangements of stable-retro's processes")
        env, note = peer.make(settings, 1.0)
    where = f"{cell['side']}, {cell['policy']} policy, {counted(settings.lanes, 'lane')}, {settings.obs}"
    found = benchmark.measure(
        settings,
        env,
        options.iterations,
        params=params,
        see=see,
        progress=lambda text: talk.progress(f"{where}: {text}"),
    )
    policy = cell["policy"] if cell["policy"] in ("initial", "trained") else Path(cell["policy"]).name
    return {"side": cell["side"], "policy": policy, "note": note, "settings": settings.as_dict(), **found}


def _ratios(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each peer cell against the rollcart cell of the same lanes with the most threads."""
    out = []
    for before in (cell for cell in cells if cell["side"] != "rollcart"):
        same = [
            cell
            for cell in cells
            if cell["side"] == "rollcart"
            and cell["policy"] == before["policy"]
            and (cell["settings"]["lanes"], cell["settings"]["obs"])
            == (before["settings"]["lanes"], before["settings"]["obs"])
        ]
        if not same:
            continue
        after = max(same, key=lambda cell: int(cell["settings"]["threads"]))
        ratio = {
            kind: after[kind]["steps_per_second"] / before[kind]["steps_per_second"]
            for kind in ("env_only", "rollout", "training")
        }
        shares = {
            "env_share_before": before["rollout"]["env_share"],
            "env_share_after": after["rollout"]["env_share"],
        }
        out.append({"lanes": before["settings"]["lanes"], **ratio, **shares})
    return out


def _table(cells: list[dict[str, Any]]) -> str:
    head = (
        f"{'side':13}{'obs':6}{'policy':10}{'lanes':>6}{'thr':>4}"
        f"{'env only':>10}{'rollout':>10}{'training':>10}"
        f"{'env':>7}{'bound':>10}{'p50 ms':>8}{'p99 ms':>8}{'episodes':>9}{'waste':>7}"
    )
    rows = [head]
    for cell in cells:
        s, rollout, latency = cell["settings"], cell["rollout"], cell["latency_ms"]
        rows.append(
            f"{cell['side']:13}{s['obs']:6}{cell['policy'][:9]:10}{s['lanes']:>6}{s['threads'] or '-':>4}"
            f"{cell['env_only']['steps_per_second']:>10,.0f}{rollout['steps_per_second']:>10,.0f}"
            f"{cell['training']['steps_per_second']:>10,.0f}{rollout['env_share']:>7.1%}"
            f"{rollout['steps_per_second_if_env_took_no_time']:>10,.0f}{latency['p50']:>8.2f}{latency['p99']:>8.2f}"
            f"{cell['episodes']['finished']:>9}{cell['waste_share']:>7.2%}"
        )
        split = ", ".join(f"{name} {share:.1%}" for name, share in cell["training"]["split"].items())
        rows.append(f"{'':13}training's time: {split}")
    rows.append("steps/s; env: its share of a rollout; bound: rollout's rate if the environment took no time")
    return "\n".join(rows)
