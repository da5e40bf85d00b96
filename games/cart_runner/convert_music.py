"""Turn music/*.txt into byte streams for the sound driver (src/sound.s).

A file has `tempo FRAMES` (frames a unit), `loop yes|no`, then lines `pulse1:`, `pulse2:`, `triangle:`,
`noise:` that may repeat and are joined. A token is NOTE/UNITS (`c4/2`, `f#5/1`), `-/UNITS` for a rest,
or `(` ... `)xN` for a repeat; without `/UNITS` the last length holds. Noise notes are `k` kick, `s`
snare, `h` hat. Stream bytes: 0 end (loop or stop), 1 rest, 2.. pitch from C2 upwards, $80+n sets the
length to n frames.
"""

import re
from pathlib import Path

CHANNELS = ("pulse1", "pulse2", "triangle", "noise")
STEPS = {"c": 0, "d": 2, "e": 4, "f": 5, "g": 7, "a": 9, "b": 11}
DRUMS = {"k": 2, "s": 3, "h": 4}
LOWEST_OCTAVE, PITCHES = 2, 61
CPU_HZ = 1789772.7272


def pitch(name: str) -> int:
    if name == "-":
        return 1
    if name in DRUMS:
        return DRUMS[name]
    match = re.fullmatch(r"([a-g])(#?)([2-7])", name)
    if not match:
        raise ValueError(f"no note {name!r}: write c4, f#5, - or a drum k s h")
    letter, sharp, octave = match.groups()
    return 2 + STEPS[letter] + len(sharp) + 12 * (int(octave) - LOWEST_OCTAVE)


def unroll(text: str) -> list[str]:
    """Expand `( a b )x3`, innermost first."""
    pattern = re.compile(r"\(([^()]*)\)x(\d+)")
    while match := pattern.search(text):
        text = text[: match.start()] + " ".join([match[1]] * int(match[2])) + text[match.end() :]
    return text.split()


def stream(text: str, tempo: int) -> list[int]:
    if not text.strip():
        return [0x80 | 127, 1, 0]  # a silent channel still needs something to loop over
    out, length, written = [], 1, 0
    for token in unroll(text):
        name, _, units = token.partition("/")
        length = int(units) if units else length
        if length * tempo > 127:
            raise ValueError(f"{token!r} lasts {length * tempo} frames, at most 127 fit: split it")
        if length != written:
            out.append(0x80 | length * tempo)
            written = length
        out.append(pitch(name))
    return [*out, 0]


def units(text: str) -> int:
    total, length = 0, 1
    for token in unroll(text):
        length = int(token.partition("/")[2] or length)
        total += length
    return total


def read_song(path: Path) -> tuple[dict[str, str], int, bool]:
    parts, tempo, loop = dict.fromkeys(CHANNELS, ""), 6, True
    for line in path.read_text().splitlines():
        head, _, tail = line.partition("#" if line.startswith("#") else ":" if ":" in line else " ")
        if head in parts:
            parts[head] += " " + tail
        elif head == "tempo":
            tempo = int(tail)
        elif head == "loop":
            loop = tail.strip() == "yes"
    lengths = {name: units(text) for name, text in parts.items() if text.strip()}
    if loop and len(set(lengths.values())) > 1:
        raise ValueError(f"{path.name}: the channels of a loop must be equally long, found {lengths}")
    return parts, tempo, loop


def include(paths: list[Path]) -> str:
    out = ["; Made by convert_music.py from music/. Song 0 is silence."]
    out += [f"SONG_{path.stem.upper()} = {i}" for i, path in enumerate(paths, 1)]
    streams, loops = [], []
    for path in paths:
        parts, tempo, loop = read_song(path)
        loops.append(int(loop))
        for name in CHANNELS:
            streams.append((f"song_{path.stem}_{name}", stream(parts[name], tempo)))
    for half, sign in (("lo", "<"), ("hi", ">")):
        out += [f"song_{half}:"] + [f"  .byte {sign}{label}" for label, _ in streams]
    out += ["song_loops:", "  .byte " + ",".join(map(str, loops))]
    for label, data in streams:
        out += [f"{label}:"] + [
            "  .byte " + ",".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)
        ]
    periods = [round(CPU_HZ / (16 * 65.40639 * 2 ** (i / 12))) - 1 for i in range(PITCHES)]
    out += ["period_lo = * - 2"] + [f"  .byte {p & 255}" for p in periods]
    out += ["period_hi = * - 2"] + [f"  .byte {p >> 8}" for p in periods]
    return "\n".join(out) + "\n"
