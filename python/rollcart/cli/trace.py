"""`trace`: instructions as the CPU executes them; the lines are `Console.trace`'s."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rollcart.cli import game_options
from rollcart.cli.answer import USAGE, Answer, CommandError
from rollcart.cli.talk import Talk
from rollcart.words import counted

if TYPE_CHECKING:
    from rollcart import Console
    from rollcart.buttons import Pads


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "movie", nargs="?", metavar="MOVIE", help="take the buttons and the start from a movie"
    )
    game_options.declare(parser)
    parser.add_argument(
        "--first", type=int, default=1, metavar="N", help="the first frame traced (default 1)"
    )
    parser.add_argument(
        "--frames", type=int, default=1, help="how many frames (default 1; some 10,000 lines each)"
    )
    parser.add_argument(
        "--buttons", default="-", help="held in every frame, such as RIGHT+B (default -, none)"
    )
    parser.add_argument("--out", metavar="FILE", help="write the lines there, not to stdout")


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    if options.first < 1 or options.frames < 1:
        raise CommandError(f"--first {options.first} --frames {options.frames}: expected 1 or more", USAGE)
    console, inputs = _begin(options, talk)
    for frame in range(1, options.first):
        pads = next(inputs)
        console.step(pads[0], 1, pads[1])
        talk.progress(f"frame {frame} of {options.first}")
    lines: list[str] = []
    for _ in range(options.frames):
        lines += console.trace(*next(inputs))
    document = {"first": options.first, "frames": options.frames, "lines": len(lines)}
    if options.out:
        Path(options.out).write_text("\n".join(lines) + "\n")
        talk.say(f"wrote {options.out}: {counted(len(lines), 'line')}")
        return Answer({**document, "out": options.out})
    talk.say("\n".join(lines))
    return Answer({**document, "trace": lines})


def _begin(options: argparse.Namespace, talk: Talk) -> tuple[Console, Iterator[Pads]]:
    """A console where the trace's play begins, and what is held in each frame."""
    import itertools

    from rollcart import Console, buttons, movie

    if not options.movie:
        game = game_options.find(options, talk)
        console = Console(game.rom)
        _, state = game_options.start(options, game)
        if state is not None:
            console.load(state)
        return console, itertools.repeat((buttons.mask(options.buttons), 0))
    source = movie.Movie.read(options.movie)
    last = options.first + options.frames - 1
    if last > source.frames:
        raise CommandError(f"--first and --frames ask for frame {last}: the movie has {source.frames}")
    game = game_options.find(options, talk, source.game)
    return movie.open_console(source, game.rom), iter(source.inputs)
