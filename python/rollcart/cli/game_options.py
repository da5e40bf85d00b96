"""The arguments that say which game and where it begins, the same in every command that has them."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING

from rollcart.cli.talk import Talk

if TYPE_CHECKING:
    from rollcart.games import Game


def declare(parser: argparse.ArgumentParser) -> None:
    """--game, --rom-path and --state."""
    parser.add_argument("--game", metavar="NAME", help="a game with data files; default: the bundled one")
    parser.add_argument("--rom-path", metavar="FILE", help="the ROM, where it is not in the game's folder")
    parser.add_argument(
        "--state",
        metavar="STATE",
        help="where to begin: a state of the game, a file, or NONE (power-on); default: what the game says",
    )


def find(options: argparse.Namespace, talk: Talk, default: str | None = None) -> Game:
    """The game that the arguments name, `default` where they name none; warnings become notes.

    Raises what `games.find` raises.
    """
    from rollcart import games

    name = options.game or (None if options.rom_path else default) or games.BUNDLED
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        game = games.find(name, options.rom_path)
    for warning in caught:
        talk.note(f"note: {warning.message}")
    return game


def start(options: argparse.Namespace, game: Game) -> tuple[str, bytes | None]:
    """Name and bytes of the state to begin in."""
    return game.state(options.state or game.default_state(1))
