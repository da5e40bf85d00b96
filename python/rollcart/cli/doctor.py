"""`doctor`: what is found, what is missing, how fast this machine is; the work is `rollcart.doctor`'s."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from rollcart.cli.answer import NO, Answer
from rollcart.cli.talk import Talk


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.5,
        help="how long each speed is measured, 0: not at all (default 0.5)",
    )


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    from rollcart import doctor

    found, speeds = doctor.examine(seconds=options.seconds, progress=talk.progress)
    width = max(len(one.name) for one in found)
    for one in found:
        talk.say(f"{one.level:8}{one.name:{width}}  {one.found}")
        if one.advice:
            talk.say(f"{'':8}{'':{width}}  -> {one.advice}")
    wrong = [one.name for one in found if one.level == doctor.WRONG]
    talk.say(f"to repair: {', '.join(wrong)}" if wrong else "nothing has to be repaired")
    return Answer(
        {"findings": [asdict(one) for one in found], "speeds": speeds, "wrong": wrong}, NO if wrong else 0
    )
