"""`play`: a window to play in; what happens in it is `rollcart.play`'s."""

from __future__ import annotations

import argparse
from pathlib import Path

from rollcart.cli import game_options
from rollcart.cli.answer import Answer
from rollcart.cli.talk import Talk
from rollcart.words import counted

_MEBIBYTE = 1 << 20


def declare(parser: argparse.ArgumentParser) -> None:
    game_options.declare(parser)
    parser.add_argument("--movie", metavar="FILE", help="watch a movie; a button takes over from it")
    parser.add_argument("--record", action="store_true", help="record a movie from the first frame on")
    parser.add_argument(
        "--scale", type=int, default=3, help="screen pixels for one of the console's (default 3)"
    )
    parser.add_argument("--fullscreen", action="store_true", help="begin in full screen")
    parser.add_argument(
        "--folder",
        default="rollcart-play",
        help="where states, movies and pictures are written (default rollcart-play)",
    )
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="TARGET=KEY",
        help="another key for a button or command: A=k, 2:START=t, SAVE=f2; F1 in the window lists them",
    )
    parser.add_argument(
        "--rewind", type=int, default=64, metavar="MIB", help="memory for frames to take back (default 64)"
    )
    parser.add_argument("--frames", type=int, help="end after so many screen refreshes")


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    from rollcart import movie
    from rollcart.play import keys
    from rollcart.play.session import Session
    from rollcart.play.window import Window

    watch = movie.Movie.read(options.movie) if options.movie else None
    game = game_options.find(options, talk, watch.game if watch else None)
    session = Session(
        game,
        game_options.start(options, game),
        folder=Path(options.folder).expanduser(),
        rewind_bytes=options.rewind * _MEBIBYTE,
        watch=watch,
    )
    inputs = keys.Inputs(keys.bindings(options.bind))
    window = Window(session, inputs, scale=options.scale, fullscreen=options.fullscreen)
    if options.record:
        session.command("RECORD")
    window.run(options.frames)
    talk.say(f"played {counted(session.frames, 'frame')} of {game.name}")
    for path in session.written:
        talk.say(f"wrote {path}")
    return Answer(
        {"game": game.name, "frames": session.frames, "written": [str(path) for path in session.written]}
    )
