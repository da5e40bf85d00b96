#!/usr/bin/env python3
"""Take the pictures of docs/images from the running game: the title, and one moment of each level's movie.

Each picture is stable-retro's window (224 rows, 240 columns) at twice its size, as a PNG. Needs the
built native module and numpy.

    .venv/bin/python games/cart_runner/tools/take_pictures.py
"""

import struct
import zlib

import numpy as np
from find_movie import DATA, GAME, mask

import rollcart

IMAGES = GAME.parents[1] / "docs/images"
SCALE = 2
WINDOW = np.s_[8:232, 8:248]
TITLE_FRAMES = 150
MOMENTS = {1: 290, 2: 560, 3: 560, 4: 1120}  # frame of the movie


def png(rgb: np.ndarray) -> bytes:
    """An RGB picture, uint8[h, w, 3], as the bytes of a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def window(console: rollcart.Console) -> np.ndarray:
    return console.rgb()[WINDOW].repeat(SCALE, 0).repeat(SCALE, 1)


def level_moment(level: int, frames: int) -> np.ndarray:
    """The picture after `frames` frames of the level's movie."""
    console = rollcart.Console(DATA / "rom.nes")
    console.load((DATA / f"Level{level}.state").read_bytes())
    for line in (GAME / "movies" / f"level{level}.txt").read_text().splitlines():
        if not line.startswith("#"):
            count, buttons = line.split()
            if frames > 0:
                console.step(mask(buttons), min(int(count), frames))
            frames -= int(count)
    return window(console)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    console = rollcart.Console(DATA / "rom.nes")
    console.step(0, TITLE_FRAMES)
    pictures = {"title": window(console)}
    pictures |= {f"level{level}": level_moment(level, frames) for level, frames in MOMENTS.items()}
    for name, picture in pictures.items():
        (IMAGES / f"{name}.png").write_bytes(png(picture))
        print(f"docs/images/{name}.png")


if __name__ == "__main__":
    main()
