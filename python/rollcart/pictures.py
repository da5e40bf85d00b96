"""Pictures and videos of a console or a lane: PNG and GIF (Pillow), MP4 (H.264 by imageio-ffmpeg).

    with Video("lane3.mp4", fps=NTSC_FPS / 4) as video:  # a batch shows every fourth frame
        for _ in range(1000):
            envs.step(actions)
            video.add(envs.render_lane(3))

A picture is uint8[rows, columns, 3]. Needs the extra `play`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollcart import _extras
from rollcart._native import Console
from rollcart.errors import ConfigError

NTSC_FPS = 60.0988
GIF_TICKS = 100  # a second
"""GIF counts time in hundredths; players slow down anything below two of them."""
_SLOWEST_GIF_FRAME = 0.045
_WINDOW = np.s_[8:232, 8:248]

Picture = NDArray[np.uint8]


def window(console: Console) -> Picture:
    """The console's picture as Stable Retro and `render_lane` show it: uint8[224, 240, 3]."""
    return console.rgb()[_WINDOW]


def enlarged(picture: Picture, scale: int) -> Picture:
    """Each pixel as a square of scale x scale."""
    return picture.repeat(scale, 0).repeat(scale, 1) if scale > 1 else picture


def write_png(path: str | os.PathLike[str], picture: Picture, scale: int = 1) -> None:
    """Writes one picture, losslessly."""
    image = _extras.need("PIL.Image", "play", "a PNG")
    image.fromarray(enlarged(picture, scale)).save(Path(path).expanduser(), "PNG", optimize=True)


class Video:
    """Writes pictures to a file of the kind that its name's end says: .mp4, .gif, or .png (the last picture).

    fps: pictures a second as they come. A GIF drops some, since it cannot show more than 20 a second at the
    right speed. scale: screen pixels for one of the console's, on each axis. `close` finishes the file; where
    an exception ends the block, what was added so far is kept.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float = NTSC_FPS, scale: int = 2) -> None:
        self.path = Path(path).expanduser()
        if self.path.suffix.lower() not in _KINDS:
            raise ConfigError(f"{self.path}: expected a name that ends in {', '.join(_KINDS)}")
        if not 1 <= scale <= 16:
            raise ConfigError(f"scale: expected 1 to 16, found {scale}")
        if not 0 < fps <= 1000:
            raise ConfigError(f"fps: expected a number above 0 and at most 1000, found {fps}")
        if not self.path.parent.is_dir():
            raise ConfigError(f"{self.path}: there is no folder {self.path.parent}; make it first")
        self.pictures = 0
        self._sink = _KINDS[self.path.suffix.lower()](self.path, fps, scale)
        next(self._sink)

    def add(self, picture: Picture) -> None:
        """Takes one picture, uint8[rows, columns, 3]; all of a video have the same size."""
        self._sink.send(picture)
        self.pictures += 1

    def close(self) -> None:
        """Finishes the file; may be called again."""
        self._sink.close()

    def __enter__(self) -> Video:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


Sink = Generator[None, Picture, None]


def _png(path: Path, _fps: float, scale: int) -> Sink:
    _extras.need("PIL.Image", "play", "a PNG")
    last = None
    try:
        while True:
            last = yield
    finally:
        if last is not None:
            write_png(path, last, scale)


def _gif(path: Path, fps: float, scale: int) -> Sink:
    image = _extras.need("PIL.Image", "play", "a GIF")
    every = max(1, round(fps * _SLOWEST_GIF_FRAME))
    frames: list[Any] = []
    seen = 0
    try:
        while True:
            picture = yield
            if seen % every == 0:
                frames.append(_indexed(image, enlarged(picture, scale)))
            seen += 1
    finally:
        if frames:
            # Each frame ends at the hundredth next to its true time, so that a long video keeps its speed.
            ends = [round((at + 1) * every / fps * GIF_TICKS) for at in range(len(frames))]
            shown = [10 * (end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
            frames[0].save(
                path, "GIF", save_all=True, append_images=frames[1:], duration=shown, loop=0, disposal=1
            )


def _indexed(image: Any, picture: Picture) -> Any:
    """The picture with a palette of exactly its colours, where it has at most 256."""
    packed = picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    colours, indices = np.unique(packed, return_inverse=True)
    if len(colours) > 256:
        return image.fromarray(picture).quantize(256)
    rows, columns = packed.shape
    out = image.frombytes("P", (columns, rows), indices.astype(np.uint8).tobytes())
    out.putpalette(np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.uint8).tobytes())
    return out


def _mp4(path: Path, fps: float, scale: int) -> Sink:
    ffmpeg = _extras.need("imageio_ffmpeg", "play", "an MP4")
    writer = None
    try:
        while True:
            picture = yield
            if writer is None:
                rows, columns = picture.shape[:2]
                # Players want even sizes, and two colour samples of each four.
                sizes = f"scale={columns * scale}:{rows * scale}:flags=neighbor,pad=ceil(iw/2)*2:ceil(ih/2)*2"
                writer = ffmpeg.write_frames(
                    str(path),
                    (columns, rows),
                    fps=fps,
                    codec="libx264",
                    macro_block_size=1,
                    ffmpeg_log_level="error",
                    output_params=[
                        "-vf",
                        sizes,
                        "-crf",
                        "16",
                        "-preset",
                        "veryfast",
                        "-movflags",
                        "+faststart",
                    ],
                )
                writer.send(None)
            writer.send(np.ascontiguousarray(picture))
    finally:
        if writer is not None:
            writer.close()


_KINDS: dict[str, Callable[[Path, float, int], Sink]] = {".mp4": _mp4, ".gif": _gif, ".png": _png}
