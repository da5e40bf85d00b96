"""`rollcart play` and `rollcart record`, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest
from PIL import Image
from vec_model import GAME

from rollcart import cli, movie
from rollcart.cli import answer

MOVIES = Path(__file__).parents[3] / "games/cart_runner/movies"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")

    def call(*words: object) -> tuple[int, dict[str, Any], str]:
        capsys.readouterr()
        code = cli.main([*map(str, words), "--json"])
        shown = capsys.readouterr()
        return code, json.loads(shown.out), shown.err

    return call


def moviefile(folder: Path) -> Path:
    (folder / "inputs.txt").write_text("30 RIGHT\n20 RIGHT+A\n40 -\n")
    assert cli.main(["record", str(folder / "inputs.txt"), "--out", str(folder / "a.rcm")]) == 0
    return folder / "a.rcm"


def test_play_records_from_the_first_frame_and_the_movie_is_checked(ask: Any, tmp_path: Path) -> None:
    code, said, _ = ask("play", "--record", "--frames", 30, "--folder", tmp_path, "--scale", 1)
    (path,) = said["written"]
    assert code == 0 and said["frames"] == 30
    code, said, _ = ask("record", path, "--check")
    assert code == 0
    assert (said["played"], said["checked"], said["start"]) == (30, True, "Level1")


def test_play_watches_a_movie(ask: Any, tmp_path: Path) -> None:
    code, said, _ = ask("play", "--movie", moviefile(tmp_path), "--frames", 40, "--scale", 1)
    assert (code, said["frames"]) == (0, 40)


def test_play_refuses_a_wrong_binding_and_says_what_there_is(ask: Any) -> None:
    code, said, err = ask("play", "--bind", "JUMP=x", "--frames", 1)
    assert code == answer.INPUT and "TARGET=KEY" in said["error"] and said["error"] in err


def test_inputs_as_text_become_a_movie_a_video_and_a_picture(ask: Any, tmp_path: Path) -> None:
    path = moviefile(tmp_path)
    assert movie.Movie.read(path).frames == 90
    code, said, _ = ask("record", path, "--out", tmp_path / "a.mp4", "--first", 31, "--to", 60, "--scale", 1)
    assert code == 0 and said["pictures"] == 30
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 30
    assert ask("record", path, "--out", tmp_path / "a.png", "--to", 60)[0] == 0
    assert Image.open(tmp_path / "a.png").size == (480, 448)


def test_the_winning_movie_of_a_level_is_a_movie_that_replays(ask: Any, tmp_path: Path) -> None:
    out = tmp_path / "won.rcm"
    code, said, _ = ask("record", MOVIES / "level1.txt", "--state", "Level1", "--out", out)
    assert code == 0 and said["frames"] > 1000
    assert ask("record", out, "--check")[0] == 0


def test_a_replay_that_diverges_is_a_no_with_the_frame(ask: Any, tmp_path: Path) -> None:
    path = moviefile(tmp_path)
    path.write_text(path.read_text().replace("30 RIGHT\n", "20 RIGHT\n10 LEFT\n"))
    code, said, _ = ask("record", path, "--check")
    assert (code, said["diverged"]) == (answer.NO, 21)
    code, said, _ = ask("record", path, "--no-check", "--out", tmp_path / "a.png")
    assert code == 0 and said["checked"] is False


def test_any_lane_of_a_batch_becomes_a_video_and_a_movie(ask: Any, tmp_path: Path) -> None:
    words = ("record", "--lanes", 3, "--lane", 2, "--steps", 40, "--seed", 7)
    code, said, _ = ask(*words, "--out", tmp_path / "a.gif")
    assert code == 0 and said["pictures"] == 40
    assert Image.open(tmp_path / "a.gif").n_frames > 10
    assert ask(*words, "--out", tmp_path / "a.rcm")[0] == 0
    assert movie.Movie.read(tmp_path / "a.rcm").frames == 40 * 4 + 1
    assert ask("record", tmp_path / "a.rcm", "--check")[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ((), answer.USAGE, "--out FILE, or --check"),
        (("--check",), answer.USAGE, "needs a MOVIE"),
        (("nowhere.rcm", "--check"), answer.INPUT, "nowhere.rcm"),
        (("--out", "a.avi"), answer.INPUT, ".mp4, .gif, .png"),
        (("--out", "a.gif", "--lane", "4"), answer.INPUT, "expected 0 to 0"),
        (("--out", "a.gif", "--first", "5", "--to", "4"), answer.USAGE, "first <= to"),
        ((str(GAME / "rom.nes"), "--check"), answer.INPUT, "expected a movie"),
    ],
)
def test_what_cannot_be_recorded_says_why(ask: Any, words: tuple[str, ...], code: int, text: str) -> None:
    found, said, _ = ask("record", *words)
    assert found == code and text in said["error"]
