"""Playing by hand without a window: bindings, frames taken back, pacing, states, movies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from vec_model import GAME

import rollcart
from rollcart import buttons, games, movie, pictures
from rollcart.buttons import BITS
from rollcart.errors import ConfigError
from rollcart.play import keys
from rollcart.play.pacing import Pacer
from rollcart.play.rewind import Rewind
from rollcart.play.session import FAST_FRAMES, Session

ROM = (GAME / "rom.nes").read_bytes()
RIGHT, LEFT, A = (128, 0), (64, 0), (1, 0)


def session(folder: Path, **options) -> Session:
    game = games.find(games.BUNDLED)
    return Session(game, game.state("Level1"), folder=folder, **options)


def play(one: Session, *runs: tuple[int, buttons.Pads]) -> None:
    for count, pads in runs:
        for _ in range(count):
            one.tick(pads)


# ------------------------------------------------------------------------------------------------- keys


def test_held_keys_are_buttons_of_both_pads_and_opposites_cancel_out() -> None:
    inputs = keys.Inputs()
    for source in ("right", "x", "i", "return"):
        assert inputs.press(source) is None
    assert inputs.pads() == (BITS["RIGHT"] | BITS["A"] | BITS["START"], BITS["UP"])
    inputs.press("left")
    inputs.press("k")
    assert inputs.pads() == (BITS["A"] | BITS["START"], 0)
    inputs.release("right")
    assert inputs.pads()[0] & BITS["LEFT"]
    inputs.release_all()
    assert inputs.pads() == (0, 0)


def test_a_button_stays_held_until_the_last_of_its_keys_is_up() -> None:
    inputs = keys.Inputs()
    inputs.press("z")
    inputs.press("y")
    inputs.release("z")
    assert inputs.pads() == (BITS["B"], 0)
    inputs.release("y")
    assert inputs.pads() == (0, 0)


def test_a_stick_is_a_cross_with_a_dead_zone() -> None:
    inputs = keys.Inputs()
    for pad, vertical, value, expected in [
        (1, False, 0.9, (BITS["RIGHT"], 0)),
        (1, False, 0.2, (0, 0)),
        (1, False, -1.0, (BITS["LEFT"], 0)),
        (1, True, -1.0, (BITS["LEFT"] | BITS["UP"], 0)),
        (2, True, 1.0, (BITS["LEFT"] | BITS["UP"], BITS["DOWN"])),
    ]:
        inputs.axis(pad, vertical, value)
        assert inputs.pads() == expected


def test_commands_come_once_a_press_and_held_ones_are_asked_for() -> None:
    inputs = keys.Inputs()
    assert inputs.press("f5") == "SAVE"
    assert inputs.press("f5") is None
    assert inputs.press("backspace") is None
    assert inputs.holds("REWIND") and not inputs.holds("FAST")
    assert inputs.press("no such key") is None


def test_a_binding_takes_the_place_of_all_keys_of_its_target() -> None:
    bound = keys.bindings(["A=k", "a=J", "2:START=return", "SAVE=f2"])
    assert (bound["k"], bound["j"], bound["return"], bound["f2"]) == ("A", "A", "2:START", "SAVE")
    assert "x" not in bound and "f5" not in bound
    assert list(bound.values()).count("START") == 1  # the pad's, since its key was taken
    rows = {what: source for source, what in keys.help_lines(bound)}
    assert rows["button A"] == "k or j" and rows["button START"] == "(none)"


@pytest.mark.parametrize("change", ["A", "JUMP=x", "A=", "3:A=x"])
def test_a_binding_of_another_form_lists_the_targets(change: str) -> None:
    with pytest.raises(ConfigError, match=r"TARGET=KEY.*2:SELECT.*REWIND"):
        keys.bindings([change])


def test_no_key_has_two_meanings_by_default() -> None:
    sources = [s for many in keys.BUTTONS.values() for s in many]
    sources += [s for many, _ in keys.COMMANDS.values() for s in many]
    assert len(sources) == len(set(sources))


# ----------------------------------------------------------------------------------------------- rewind


def test_frames_taken_back_are_the_frames_that_were_with_their_pictures() -> None:
    console, ring = rollcart.Console(ROM), Rewind()
    console.load((GAME / "Level1.state").read_bytes())
    seen = []
    for number in range(60):
        pads = (128 if number % 7 else 129, 0)
        ring.push(console, pads)
        console.step(pads[0])
        seen.append((console.save(), console.frame()))
    for state, picture in reversed(seen[:-1]):
        assert ring.back(console)
        assert console.save() == state
        assert np.array_equal(console.frame(), picture)
    assert not ring.back(console) and console.save() == seen[0][0]


def test_the_ring_forgets_the_oldest_frames_and_never_holds_more_than_its_bytes() -> None:
    console, ring = rollcart.Console(ROM), Rewind(20_000)
    for _ in range(200):
        ring.push(console, RIGHT)
        console.step(RIGHT[0])
        assert ring.bytes <= 20_000
    kept = len(ring)
    assert 2 < kept < 200
    taken = sum(ring.back(console) for _ in range(200))
    assert taken == kept - 1
    assert console.frame_count == 200 - taken


def test_a_ring_of_no_bytes_holds_nothing_and_a_negative_one_is_refused() -> None:
    console, ring = rollcart.Console(ROM), Rewind(0)
    for _ in range(3):
        ring.push(console, RIGHT)
        console.step()
    assert not ring.back(console)
    with pytest.raises(ConfigError, match="number of bytes"):
        Rewind(-1)


# ----------------------------------------------------------------------------------------------- pacing


class Clock:
    def __init__(self) -> None:
        self.time, self.slept = 100.0, []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def test_frames_come_at_the_rate_whatever_they_cost() -> None:
    clock = Clock()
    pacer = Pacer(50.0, clock.now, clock.sleep)
    for cost in (0.001, 0.019, 0.030, 0.005, 0.001):
        clock.time += cost
        pacer.wait()
    # The third frame was late; the fourth made up for it, so all five took five periods.
    assert clock.time == pytest.approx(100.0 + 5 / 50)
    assert clock.slept == pytest.approx([0.019, 0.001, 0.005, 0.019])


def test_after_a_long_stop_no_burst_of_frames_follows() -> None:
    clock = Clock()
    pacer = Pacer(50.0, clock.now, clock.sleep)
    clock.time += 10.0
    pacer.wait()
    pacer.wait()
    assert clock.slept == pytest.approx([0.02])


# ---------------------------------------------------------------------------------------------- session


def test_a_session_plays_what_a_console_plays(tmp_path: Path) -> None:
    one = session(tmp_path)
    console = rollcart.Console(ROM)
    console.load((GAME / "Level1.state").read_bytes())
    assert one.console.frame().any(), "the first picture is there before the first frame"
    play(one, (30, RIGHT), (10, A))
    console.step(RIGHT[0], 30)
    console.step(A[0], 10)
    assert one.console.save() == console.save()
    one.tick(RIGHT, fast=True)
    assert one.console.frame_count == console.frame_count + FAST_FRAMES


def test_a_paused_session_moves_by_frames_only(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("PAUSE")
    before = one.console.frame_count
    play(one, (5, RIGHT))
    assert one.console.frame_count == before
    one.command("ADVANCE")
    assert one.console.frame_count == before + 1 and one.paused
    one.command("PAUSE")
    play(one, (5, RIGHT))
    assert one.console.frame_count == before + 6


def test_a_saved_state_is_loaded_again_also_in_an_environment(tmp_path: Path) -> None:
    one = session(tmp_path / "new")
    play(one, (30, RIGHT))
    one.command("SAVE")
    state = one.console.save()
    play(one, (30, A))
    one.command("LOAD")
    assert one.console.save() == state
    (path,) = (tmp_path / "new").iterdir()
    env = rollcart.NesVectorEnv(state=path, obs="ram")
    assert env.reset()[1]["state"].tolist() == ["CartRunner-Nes-v0-slot0"]
    env.close()


def test_slots_are_apart_and_an_empty_one_says_so(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("SAVE")
    one.command("NEXT_SLOT")
    assert one.messages[-1] == "slot 1 (empty)"
    before = one.console.save()
    one.command("LOAD")
    assert "slot 1 is empty" in one.messages[-1] and one.console.save() == before


def test_what_cannot_be_written_is_said_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one = session(tmp_path / "file")
    one.command("SCREENSHOT")
    assert one.running and "file" in one.messages[-1]


def test_a_damaged_slot_is_said_and_changes_nothing(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.save().write_bytes(b"RCST broken")
    before = one.console.save()
    one.command("LOAD")
    assert "state" in one.messages[-1] and one.console.save() == before


def test_a_movie_recorded_from_the_start_replays_and_names_the_start(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("RECORD")
    play(one, (40, RIGHT), (3, (8, 0)), (30, LEFT))
    path = one.record()
    made = movie.Movie.read(path)
    assert (made.start_name, made.frames) == ("Level1", 73)
    *_, last = movie.replay(made, ROM)
    assert last.save() == one.console.save()


def test_a_movie_of_play_with_frames_taken_back_and_states_loaded_replays(tmp_path: Path) -> None:
    one = session(tmp_path)
    play(one, (20, RIGHT))
    one.command("RECORD")
    play(one, (50, RIGHT))
    for _ in range(15):
        one.tick((0, 0), rewinding=True)
    play(one, (20, A))
    one.command("SAVE")
    play(one, (40, LEFT))
    one.command("LOAD")
    play(one, (30, (129, 0)))
    made = movie.Movie.read(one.record())
    assert made.frames == 50 - 15 + 20 + 30
    assert made.rerecords == 16
    *_, last = movie.replay(made, ROM)
    assert last.save() == one.console.save()


def test_a_movie_that_ends_right_after_a_state_was_loaded_replays(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("RECORD")
    play(one, (33, RIGHT))
    one.command("SAVE")
    play(one, (5, LEFT))
    one.command("LOAD")
    made = movie.Movie.read(one.record())
    assert made.frames == 33 and len(list(movie.replay(made, ROM))) == 33


def test_frames_are_not_taken_back_behind_the_start_of_a_movie(tmp_path: Path) -> None:
    one = session(tmp_path)
    play(one, (20, RIGHT))
    one.command("RECORD")
    play(one, (3, A))
    assert [one.back() for _ in range(4)] == [True, True, True, False]
    assert one.messages[-1] == "the movie begins here"
    play(one, (5, A))
    assert movie.Movie.read(one.record()).frames == 5


def test_a_state_of_another_timeline_ends_the_movie_and_saves_it(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("SAVE")
    one.command("RECORD")
    play(one, (12, RIGHT))
    one.command("LOAD")
    assert one.recorder is None
    (path,) = tmp_path.glob(f"*{movie.SUFFIX}")
    assert len(list(movie.replay(movie.Movie.read(path), ROM))) == 12


def test_quitting_saves_the_movie_that_is_being_recorded(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.command("RECORD")
    play(one, (12, RIGHT))
    one.command("QUIT")
    assert not one.running and list(tmp_path.glob(f"*{movie.SUFFIX}"))


def test_names_that_are_taken_are_left_alone(tmp_path: Path) -> None:
    one = session(tmp_path)
    first, second = one.screenshot(), one.screenshot()
    assert [path.name for path in (first, second)] == [f"CartRunner-Nes-v0-00{n}.png" for n in (1, 2)]
    assert np.array_equal(np.asarray(Image.open(first)), pictures.window(one.console))


def test_the_reset_button_is_pressed_but_not_in_a_movie(tmp_path: Path) -> None:
    one = session(tmp_path)
    play(one, (20, RIGHT))
    one.command("RECORD")
    one.command("RESET")
    assert "end it first" in one.messages[-1]
    one.command("RECORD")
    console = rollcart.Console(ROM)
    console.load(one.console.save())
    one.command("RESET")
    console.reset(soft=True)
    assert one.console.save() == console.save()


def watched(folder: Path) -> tuple[Session, movie.Movie]:
    one = session(folder)
    one.command("RECORD")
    play(one, (40, RIGHT), (30, A))
    made = movie.Movie.read(one.record())
    return Session(one.game, folder=folder, watch=made), made


def test_a_watched_movie_plays_to_its_end_and_can_be_taken_back(tmp_path: Path) -> None:
    one, made = watched(tmp_path)
    play(one, (30, (0, 0)))
    assert one.watching == (30, 70)
    for _ in range(10):
        one.tick((0, 0), rewinding=True)
    assert one.watching == (20, 70)
    play(one, (50, (0, 0)))
    assert one.watching is None and one.paused
    assert movie.digest(one.console) == made.digests[70]
    assert "ended" in one.messages[-1]


def test_a_button_takes_over_from_a_movie(tmp_path: Path) -> None:
    one, _ = watched(tmp_path)
    play(one, (10, (0, 0)), (1, LEFT))
    assert one.watching is None and "taken over" in one.messages[-1] and not one.paused


def test_a_watched_movie_that_diverges_says_in_which_frame(tmp_path: Path) -> None:
    one, made = watched(tmp_path)
    made.checks[24] ^= 1
    play(one, (40, (0, 0)))
    assert "frame 25" in one.messages[-1] and one.paused
