"""Videos and pictures, read back with the libraries that read them elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image
from vec_model import GAME

import rollcart
from rollcart import pictures
from rollcart.errors import ConfigError, NotInstalled


def frames(count: int) -> list[np.ndarray]:
    console = rollcart.Console(GAME / "rom.nes")
    console.load((GAME / "Level1.state").read_bytes())
    out = []
    for _ in range(count):
        console.step(128)
        out.append(pictures.window(console))
    return out


def test_a_png_has_every_pixel_as_a_square(tmp_path: Path) -> None:
    (picture,) = frames(1)
    pictures.write_png(tmp_path / "a.png", picture, scale=3)
    read = np.asarray(Image.open(tmp_path / "a.png"))
    assert read.shape == (672, 720, 3)
    assert np.array_equal(read[1::3, 2::3], picture)


def test_a_gif_shows_every_third_frame_exactly_and_at_the_right_speed(tmp_path: Path) -> None:
    shown = frames(60)
    with pictures.Video(tmp_path / "a.gif", scale=1) as video:
        for picture in shown:
            video.add(picture)
    read = Image.open(tmp_path / "a.gif")
    total = 0
    for index in range(read.n_frames):
        read.seek(index)
        total += read.info["duration"]
        assert np.array_equal(np.asarray(read.convert("RGB")), shown[3 * index]), index
    assert read.n_frames == 20
    assert total == 1000


def test_an_mp4_has_all_frames_at_the_consoles_rate_and_close_to_the_picture(tmp_path: Path) -> None:
    shown = frames(12)
    path = tmp_path / "a.mp4"
    with pictures.Video(path, scale=2) as video:
        for picture in shown:
            video.add(picture)
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    assert facts["codec"] == "h264" and facts["size"] == (480, 448)
    assert facts["fps"] == pytest.approx(60.1, abs=0.05)
    read = [np.frombuffer(data, np.uint8).reshape(448, 480, 3) for data in reader]
    assert len(read) == len(shown)
    for one, picture in zip(read, shown, strict=True):
        # Lossy, and with half the colour samples; a wrong frame or order is off by far more.
        assert np.abs(one[::2, ::2].astype(int) - picture).mean() < 6


def test_any_lane_of_a_running_batch_becomes_a_video(tmp_path: Path) -> None:
    env = rollcart.NesVectorEnv(num_envs=3, obs="ram")
    env.reset(seed=0)
    with pictures.Video(tmp_path / "lane.png", scale=1) as video:
        for step in range(5):
            env.step(np.array([0, 6, 3]))
            video.add(env.render_lane(1))
            assert video.pictures == step + 1
    last = env.render_lane(1)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "lane.png")), last)
    assert not np.array_equal(last, env.render_lane(0))
    env.close()


def test_what_was_added_before_an_exception_is_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), pictures.Video(tmp_path / "a.gif") as video:
        video.add(frames(1)[0])
        raise KeyboardInterrupt
    assert Image.open(tmp_path / "a.gif").n_frames == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.avi",), "ends in .mp4, .gif, .png"),
        (("a.gif", 60, 0), "scale: expected 1 to 16"),
        (("a.gif", 0), "fps"),
        (("nowhere/a.gif",), "no folder"),
    ],
)
def test_a_video_that_cannot_be_says_what_is_expected(tmp_path: Path, arguments, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pictures.Video(tmp_path / arguments[0], *arguments[1:])


def test_a_missing_library_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(NotInstalled, match=r"imageio_ffmpeg.*pip install 'rollcart\[play\]'"):
        pictures.Video(tmp_path / "a.mp4")


def test_the_home_folder_of_a_picture_may_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pictures.write_png("~/one.png", frames(1)[0])
    with pictures.Video("~/all of it \u00e9.gif") as video:
        for picture in frames(6):
            video.add(picture)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all of it \u00e9.gif", "one.png"]
