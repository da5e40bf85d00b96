"""Movies: written, read, replayed; and every way in which one can be wrong says so."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from vec_model import GAME

import rollcart
from rollcart import buttons, games, movie
from rollcart.errors import ConfigError, MovieDiverged, MovieError, RomError

ROM = (GAME / "rom.nes").read_bytes()
INPUTS = [(128, 0)] * 40 + [(128 | 2 | 1, 0)] * 25 + [(8, 4)] * 3 + [(0, 0)] * 62 + [(4, 1)] * 20
PLAIN_MOVIE = Path(__file__).parents[3] / "games/cart_runner/movies/level1.txt"


def recorded(inputs: list[tuple[int, int]] = INPUTS) -> movie.Movie:
    game = games.find(games.BUNDLED)
    name, start = game.state("Level1")
    console = rollcart.Console(ROM)
    console.load(start)
    recorder = movie.Recorder.at_start(console, game, name, start)
    for pads in inputs:
        console.step(pads[0], 1, pads[1])
        recorder.frame(pads)
    return recorder.finish()


def test_a_movie_that_was_written_and_read_is_the_same_and_replays(tmp_path: Path) -> None:
    made = recorded()
    made.write(tmp_path / "a.rcm")
    read = movie.Movie.read(tmp_path / "a.rcm")
    assert read == made
    assert sorted(read.digests) == [60, 120, 150]
    pictures = [console.frame() for console in movie.replay(read, ROM)]
    assert len(pictures) == 150
    assert not (pictures[0] == pictures[-1]).all()


def test_replayed_with_state_saved_and_loaded_between_frames_a_movie_ends_the_same() -> None:
    made = recorded()
    console = movie.open_console(made, ROM)
    for pads in made.inputs:
        fresh = rollcart.Console(ROM)
        fresh.load(console.save())
        console = fresh
        console.step(pads[0], 1, pads[1])
    assert movie.digest(console) == made.digests[150]


def test_a_movie_from_power_on_needs_no_state(tmp_path: Path) -> None:
    game = games.find(games.BUNDLED)
    console = rollcart.Console(ROM)
    recorder = movie.Recorder.at_start(console, game, games.POWER_ON, None)
    for _ in range(70):
        console.step(8)
        recorder.frame((8, 0))
    recorder.finish().write(tmp_path / "a.rcm")
    assert "[start]" not in (tmp_path / "a.rcm").read_text()
    assert len(list(movie.replay(movie.Movie.read(tmp_path / "a.rcm"), ROM))) == 70


def test_a_movie_that_begins_in_the_middle_of_play_carries_its_state() -> None:
    console = rollcart.Console(ROM)
    console.step(0, 100)
    recorder = movie.Recorder.here(console, games.find(games.BUNDLED))
    console.step(8)
    recorder.frame((8, 0))
    made = recorder.finish()
    assert made.start_name == "frame 100"
    (last,) = movie.replay(made, ROM)
    assert last.save() == console.save()


def test_another_button_in_one_frame_is_found_in_the_frame_where_ram_shows_it() -> None:
    made = recorded()
    made.inputs[49] = (0, 0)
    played = []
    with pytest.raises(MovieDiverged, match="diverges in frame 50") as caught:
        played.extend(console.frame_count for console in movie.replay(made, ROM))
    assert caught.value.frame == 50
    assert len(played) == 49
    assert len(list(movie.replay(made, ROM, check=False))) == 150


def test_a_picture_that_changes_while_ram_does_not_is_found_by_the_second() -> None:
    made = recorded()
    made.digests[120] = "0" * 16
    with pytest.raises(MovieDiverged, match=r"RAM agrees.*after frame 60") as caught:
        list(movie.replay(made, ROM))
    assert caught.value.frame == 120


def test_taking_frames_back_leaves_a_movie_that_was_never_played_otherwise() -> None:
    game = games.find(games.BUNDLED)
    name, start = game.state("Level1")
    console = rollcart.Console(ROM)
    console.load(start)
    recorder = movie.Recorder.at_start(console, game, name, start)
    states = []
    for _ in range(90):
        states.append(console.save())
        console.step(64)
        recorder.frame((64, 0))
    recorder.cut(40)
    console.load(states[40])
    for pads in INPUTS[40:]:
        console.step(pads[0], 1, pads[1])
        recorder.frame(pads)
    made = recorder.finish()
    assert made.rerecords == 1
    expected = recorded([(64, 0)] * 40 + INPUTS[40:])
    expected.rerecords = 1
    assert made == expected


def test_another_rom_is_refused_with_both_digests() -> None:
    made = recorded()
    other = ROM[:-1] + bytes([ROM[-1] ^ 1])
    with pytest.raises(RomError, match=f"{made.rom_sha1}.*{games.payload_sha1(other)}"):
        next(movie.replay(made, other))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "GIF89a", "expected a movie"),
        (lambda text: text.replace("movie 1", "movie 2", 1), "format version 2, this build reads 1"),
        (lambda text: text.replace("40 RIGHT\n", ""), "should have 150 frames, has inputs of 110"),
        (lambda text: text.replace("40 RIGHT\n", "40 JUMP\n"), r"damaged.*line \d+: .*'JUMP'"),
        (lambda text: text[: text.index("[checks]")], r"its section \[checks\] is missing"),
        (lambda text: text[: len(text) - 100], "damaged"),
        (lambda text: text.replace('"frames"', '"pictures"'), "damaged.*'frames'"),
    ],
)
def test_a_file_that_is_no_whole_movie_says_what_is_wrong(tmp_path: Path, damage, message: str) -> None:
    path = tmp_path / "a.rcm"
    path.write_text(damage(recorded().text()))
    with pytest.raises(MovieError, match=message):
        movie.Movie.read(path)


def test_bytes_that_are_no_text_are_no_movie(tmp_path: Path) -> None:
    path = tmp_path / "a.rcm"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MovieError, match="no text"):
        movie.Movie.read(path)
    assert not movie.is_movie(path)


def test_plain_lines_of_inputs_are_a_movie_without_checks() -> None:
    made = movie.from_inputs(PLAIN_MOVIE, games.find(games.BUNDLED), "Level1")
    assert made.frames == sum(
        int(line.split()[0]) for line in PLAIN_MOVIE.read_text().splitlines() if line[0] != "#"
    )
    assert made.inputs[0][0] & buttons.BITS["RIGHT"]


def test_a_bad_line_of_inputs_is_named_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "inputs.txt"
    path.write_text("# a comment\n\n10 RIGHT\nRIGHT 10\n")
    with pytest.raises(MovieError, match="line 4: expected FRAMES BUTTONS"):
        movie.from_inputs(path, games.find(games.BUNDLED), "Level1")


def test_button_names_are_the_consoles_bits_in_any_case() -> None:
    assert buttons.mask("right+B") == 130
    assert buttons.names(130) == "B+RIGHT"
    assert buttons.mask(buttons.NONE) == 0 and buttons.names(0) == buttons.NONE
    with pytest.raises(ConfigError, match="'TURBO'"):
        buttons.mask("TURBO")


def test_the_home_folder_of_a_movie_may_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = recorded(INPUTS[:60])
    made.write("~/a movie \u00e9.rcm")
    assert [path.name for path in tmp_path.iterdir()] == ["a movie \u00e9.rcm"]
    assert movie.is_movie("~/a movie \u00e9.rcm") and movie.Movie.read("~/a movie \u00e9.rcm") == made


def test_a_movie_that_an_editor_marked_as_utf_8_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.rcm"
    made = recorded(INPUTS[:60])
    path.write_bytes(b"\xef\xbb\xbf" + made.text().replace("\n", "\r\n").encode())
    assert movie.is_movie(path) and movie.Movie.read(path) == made
    path.write_bytes(b"\xef\xbb\xbf60 RIGHT\r\n")
    assert not movie.is_movie(path)
    assert movie.from_inputs(path, games.find(games.BUNDLED), "Level1").frames == 60


def test_a_movie_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    made = recorded(INPUTS[:2])
    with pytest.raises(FileNotFoundError, match=r"cannot write the movie .*gone/a\.rcm: No such file"):
        made.write(tmp_path / "gone" / "a.rcm")
    (tmp_path / "folder.rcm").mkdir()
    with pytest.raises(IsADirectoryError, match=r"cannot write the movie .*folder\.rcm"):
        made.write(tmp_path / "folder.rcm")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.rcm"]


def test_a_replay_that_diverged_says_so_across_processes() -> None:
    error = MovieDiverged(7, "RAM's check is another")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is MovieDiverged and (again.frame, str(again)) == (7, str(error))
