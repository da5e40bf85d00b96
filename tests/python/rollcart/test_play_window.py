"""The window, on SDL's dummy driver: events reach the session, the picture reaches the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rollcart import games, pictures
from rollcart.errors import ConfigError
from rollcart.play import keys
from rollcart.play.session import Session
from rollcart.play.window import Window


@pytest.fixture(autouse=True)
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


class Script:
    """In place of a pacer: does things between refreshes."""

    def __init__(self, acts: dict[int, Callable[[], object]]) -> None:
        self._acts, self._number = acts, 0

    def wait(self) -> None:
        self._number += 1
        self._acts.get(self._number, lambda: None)()


def key(name: str, down: bool = True) -> Callable[[], object]:
    import pygame

    kind = pygame.KEYDOWN if down else pygame.KEYUP
    return lambda: pygame.event.post(pygame.event.Event(kind, key=pygame.key.key_code(name)))


def run(
    folder: Path, frames: int, acts: dict[int, Callable[[], object]], **options
) -> tuple[Session, Window]:
    game = games.find(games.BUNDLED)
    session = Session(game, game.state("Level1"), folder=folder)
    window = Window(session, keys.Inputs(), **options)
    window.run(frames, pacer=Script(acts))
    return session, window


def test_keys_move_the_game_and_frames_are_taken_back(tmp_path: Path) -> None:
    acts = {
        1: key("right"),
        40: key("right", False),
        50: key("backspace"),
        60: key("backspace", False),
        70: key("f12"),
        75: key("escape"),
    }
    game = games.find(games.BUNDLED)
    begun = Session(game, game.state("Level1")).console.frame_count
    session, _ = run(tmp_path, 200, acts)
    assert not session.running
    # 75 refreshes, of which ten went back.
    assert session.console.frame_count - begun == 75 - 2 * 10
    assert [path.suffix for path in tmp_path.iterdir()] == [".png"]


def test_the_screen_shows_the_picture_in_whole_pixels_and_help_over_it(tmp_path: Path) -> None:
    import pygame

    shots: list[np.ndarray] = []

    def shoot() -> None:
        shots.append(pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1))

    acts = {
        199: shoot,
        200: key("f1"),
        201: shoot,
        202: key("f1", False),
        203: shoot,
        204: key("f1"),
        205: shoot,
    }
    session, _ = run(tmp_path, 206, acts, scale=2)
    first, helped, still, after = shots
    assert first.shape == (448, 480, 3)
    assert not np.array_equal(first, helped)
    assert np.array_equal(helped, still), "the game waits while the help is shown"
    picture = pictures.enlarged(pictures.window(session.console), 2)
    session.back()
    assert np.array_equal(after, pictures.enlarged(pictures.window(session.console), 2))
    assert not np.array_equal(after, picture)


def test_a_lost_keyboard_releases_all_keys(tmp_path: Path) -> None:
    import pygame

    def lose() -> None:
        pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))

    game = games.find(games.BUNDLED)
    inputs = keys.Inputs()
    window = Window(Session(game, folder=tmp_path), inputs)
    held = []
    acts = {
        1: key("x"),
        2: lambda: held.append(inputs.pads()),
        3: lose,
        4: lambda: held.append(inputs.pads()),
    }
    window.run(5, pacer=Script(acts))
    assert held == [(1, 0), (0, 0)]


def test_a_pads_buttons_cross_and_stick_reach_the_game(tmp_path: Path) -> None:
    import pygame

    game = games.find(games.BUNDLED)
    inputs = keys.Inputs()
    window = Window(Session(game, folder=tmp_path), inputs)
    held = []

    def post(kind: int, **facts: object) -> Callable[[], object]:
        return lambda: pygame.event.post(pygame.event.Event(kind, instance_id=0, **facts))

    see = lambda: held.append(inputs.pads()[0])  # noqa: E731
    acts = {
        1: post(pygame.JOYBUTTONDOWN, button=0),
        2: see,
        3: post(pygame.JOYHATMOTION, hat=0, value=(1, 1)),
        4: see,
        5: post(pygame.JOYBUTTONUP, button=0),
        6: post(pygame.JOYHATMOTION, hat=0, value=(0, 0)),
        7: post(pygame.JOYAXISMOTION, axis=1, value=0.8),
        8: see,
    }
    window.run(9, pacer=Script(acts))
    assert held == [1, 1 | 128 | 16, 32]


def test_sizes_change_and_stay_in_their_range(tmp_path: Path) -> None:
    import pygame

    sizes = []
    see = lambda: sizes.append(pygame.display.get_surface().get_size())  # noqa: E731
    acts = {1: see, 2: key("="), 3: key("=", False), 4: see, 5: key("-"), 6: see}
    run(tmp_path, 7, acts, scale=8)
    assert sizes == [(1920, 1792), (1920, 1792), (1680, 1568)]
    with pytest.raises(ConfigError, match="scale: expected 1 to 8"):
        run(tmp_path, 1, {}, scale=9)


def test_without_a_display_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "no_such_driver")
    with pytest.raises(ConfigError, match=r"no window.*rollcart record.*SDL_VIDEODRIVER=dummy"):
        run(tmp_path, 1, {})
