"""`bench`: environment steps per second by lanes and threads; the work is `rollcart.bench.grid`'s."""

from __future__ import annotations

import argparse

from rollcart.cli import game_options
from rollcart.cli.answer import Answer
from rollcart.cli.talk import Talk
from rollcart.words import counted


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers with commas between, found {text!r}") from None


def declare(parser: argparse.ArgumentParser) -> None:
    game_options.declare(parser)
    parser.add_argument(
        "--lanes", type=_numbers, default=[1, 16, 64], help="numbers of lanes (default 1,16,64)"
    )
    parser.add_argument(
        "--threads", type=_numbers, default=[1, 0], help="numbers of threads; 0: all usable (default 1,0)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds a turn (default 1)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each cell (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of lanes and actions (default 1)")
    parser.add_argument("--obs", choices=("image", "ram", "dict"), default="image", help="default image")
    parser.add_argument("--frame-skip", type=int, default=4, help="frames a step (default 4)")


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    from rollcart import games
    from rollcart.bench import grid

    game = game_options.find(options, talk)
    work = grid.Workload(
        options.game or games.BUNDLED,
        options.rom_path,
        options.state,
        options.lanes,
        options.threads,
        options.seconds,
        options.repeats,
        options.seed,
        {"obs": options.obs, "frame_skip": options.frame_skip},
    )
    found = grid.run(work, talk.progress)
    talk.say(f"{game.name}, random actions, {options.obs} observations, {options.frame_skip} frames a step")
    talk.say(f"{'lanes':>6} {'threads':>8} {'env steps/s':>13} {'frames/s':>13}   lowest to highest turn")
    for row in found["rows"]:
        talk.say(
            f"{row['lanes']:>6} {row['threads']:>8} {row['env_steps_per_sec']:>13,.0f} "
            f"{row['frames_per_sec']:>13,.0f}   {row['lowest']:,.0f} to {row['highest']:,.0f}"
        )
    load = found["load"]
    if load["busy"]:
        talk.say(
            f"load {load['load']:.1f} on {counted(int(load['cpus']), 'CPU')}: "
            f"others were busy, so the rates are too low"
        )
    return Answer({**found, "game": game.name})
