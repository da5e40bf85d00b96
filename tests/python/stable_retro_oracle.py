"""Stable Retro as an oracle: what its FCEUmm does with a ROM and a list of buttons, frame by frame.

One process can hold one of its emulators, so `play()` starts this file as a worker and reads frames from its
pipe. Only the emulator is used, below Stable Retro's games and scenarios: no integration folder, no crop, no
hidden frame but the one that its constructor runs. `fceumm_chunks` reads its save states by chunk id.
"""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

A, B, SELECT, START, UP, DOWN, LEFT, RIGHT = (1 << bit for bit in range(8))
# Stable Retro's order of buttons, as bits of our masks; None is a slot without a button.
BUTTON_ORDER = (B, None, SELECT, START, UP, DOWN, LEFT, RIGHT, A)
SCREEN = (224, 240, 3)
# The constructor of its emulator runs one frame, so the first frame of `play()` is the second since power-on.
HIDDEN_FRAMES = 1


@dataclass(frozen=True)
class OracleFrame:
    """A frame's end: the core's state blob (not gzip'd) and the picture, uint8[224, 240, 3]."""

    blob: bytes
    picture: np.ndarray

    def chunks(self) -> dict[tuple[int, str], bytes]:
        return fceumm_chunks(self.blob)


def fceumm_chunks(blob: bytes) -> dict[tuple[int, str], bytes]:
    """(kind of section, chunk id) -> bytes."""
    if blob[:4] != b"FCS\xff":
        raise ValueError(f"not an FCEUmm state: it starts with {blob[:4]!r}")
    chunks: dict[tuple[int, str], bytes] = {}
    at = 16
    while at < len(blob):
        kind, length = struct.unpack_from("<BI", blob, at)
        at += 5
        end = at + length
        while at < end:
            name, size = struct.unpack_from("<4sI", blob, at)
            chunks[kind, name.rstrip(b"\0").decode()] = blob[at + 8 : at + 8 + size]
            at += 8 + size
    return chunks


def lively_buttons(seed: int, frames: int, start_until: int | None = None) -> list[int]:
    """Random buttons as a restless player holds them, START often at first so that the game begins.

    Opposite directions are never held together: the core drops them, the console does not. `start_until`: the
    frame from which on START is left alone.
    """
    rng = np.random.default_rng(seed)
    single = [0, RIGHT, LEFT, UP, DOWN, A, B]
    held = [*single, RIGHT | A, RIGHT | B, LEFT | A, RIGHT | UP, LEFT | DOWN, A | B, DOWN | B]
    buttons: list[int] = []
    while len(buttons) < frames:
        chance_of_start = 0.3 if len(buttons) < 400 else 0.02
        mask = START if rng.random() < chance_of_start else held[rng.integers(len(held))]
        if rng.random() < 0.01:
            mask = SELECT
        buttons += [mask] * int(rng.integers(2, 24))
        buttons += [0] * int(rng.integers(0, 3))
    kept = frames if start_until is None else start_until
    return [mask & (0xFF if at < kept else ~START) for at, mask in enumerate(buttons[:frames])]


def play(rom: Path, buttons: list[int], state: bytes | None = None) -> Iterator[OracleFrame]:
    """The frames that the oracle runs with these masks of player 1, from power-on or from a gzip'd state."""
    command = [sys.executable, str(Path(__file__).resolve()), str(rom)]
    blob = gzip.decompress(state) if state else b""
    size = int(np.prod(SCREEN))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin and worker.stdout
        try:
            worker.stdin.write(struct.pack("<II", len(blob), len(buttons)) + blob + bytes(buttons))
            worker.stdin.close()
            for frame in range(len(buttons)):
                head = worker.stdout.read(4)
                if len(head) < 4:
                    raise RuntimeError(
                        f"stable-retro's worker ended at frame {frame} of {len(buttons)}; see stderr"
                    )
                saved = worker.stdout.read(struct.unpack("<I", head)[0])
                picture = np.frombuffer(worker.stdout.read(size), np.uint8).reshape(SCREEN)
                yield OracleFrame(saved, picture)
        finally:
            worker.kill()


def state_after(rom: Path, buttons: list[int]) -> bytes:
    """A .state file as Stable Retro writes it, saved after these frames."""
    *_, last = play(rom, buttons)
    return gzip.compress(last.blob)


def _worker(rom: str) -> None:
    import stable_retro

    emulator = stable_retro.RetroEmulator(rom)
    blob_size, frames = struct.unpack("<II", sys.stdin.buffer.read(8))
    if blob_size and not emulator.set_state(sys.stdin.buffer.read(blob_size)):
        raise SystemExit("stable-retro refuses the state")
    for mask in sys.stdin.buffer.read(frames):
        held = [button is not None and mask & button != 0 for button in BUTTON_ORDER]
        emulator.set_button_mask(np.array(held, np.uint8), 0)
        emulator.step()
        blob = emulator.get_state()
        sys.stdout.buffer.write(struct.pack("<I", len(blob)) + blob)
        sys.stdout.buffer.write(np.ascontiguousarray(emulator.get_screen()).tobytes())


if __name__ == "__main__":
    _worker(sys.argv[1])
