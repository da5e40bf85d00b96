"""Turn Cart Runner's text sources into CHR bytes and ca65 include files.

Formats, each a plain text file; a line that starts with `# ` is a comment:
  art/*.txt      `font GLYPHS`, `tile NAME`, `block NAME pal=N [flag...]` or `sprite NAME [pal=N]`, then rows
                 of `.123` (colour 0-3 of the palette); `mirror` means that the rows are the left half.
  maps/*.txt     `name`, `palette`, `music`, `time`, `legend CHAR BLOCK`, `object CHAR TYPE`, then `section`s
                 of 13 rows.
  screens/*.txt  30 rows of 32 characters; `legend CHAR BLOCK` puts a 16x16 block where a 2x2 square of CHAR
                 starts.
  music/*.txt    see convert_music.py.
This module leaves calling the assembler to build.py.
"""

from dataclasses import dataclass, field
from pathlib import Path

import convert_music

ROWS = 13  # metatile rows below the status bar
FLAGS = {
    "solid": 0x01,
    "oneway": 0x02,
    "hazard": 0x04,
    "coin": 0x08,
    "brick": 0x10,
    "crate": 0x20,
    "prize": 0x40,
}
OBJECTS = [
    "none",
    "grub",
    "beetle",
    "bat",
    "urchin",
    "hopper",
    "ember",
    "lift_h",
    "lift_v",
    "lift_drop",
    "cinder",
    "helmet",
    "spark",
    "shard",
    "goal",
    "start",
]
PLACED_ONLY = {"goal", "start"}  # become level constants, never object slots
REPEAT_COLUMN = 0xFF
LONG_RUN = 0xC0


class SourceError(Exception):
    """A text source that does not follow its format; the message names file and line."""


@dataclass
class Picture:
    kind: str
    name: str
    options: list[str]
    rows: list[str]
    where: str

    def palette(self) -> int:
        return next((int(o[4:]) for o in self.options if o.startswith("pal=")), 0)


@dataclass
class Tiles:
    """A pattern table that gives each distinct 8x8 tile one number."""

    tiles: list[bytes] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)

    def add(self, tile: bytes, fresh: bool = False) -> int:
        if fresh or tile not in self.numbers:
            if len(self.tiles) == 256:
                raise SourceError("a pattern table holds 256 tiles: the art has more distinct ones")
            self.numbers.setdefault(tile, len(self.tiles))
            self.tiles.append(tile)
            return len(self.tiles) - 1
        return self.numbers[tile]

    def image(self) -> bytes:
        return b"".join(self.tiles).ljust(0x1000, b"\0")


def planes(rows: list[str], left: int, top: int) -> bytes:
    """Two bit planes of the 8x8 tile at (left, top)."""
    low, high = bytearray(), bytearray()
    for row in rows[top : top + 8]:
        values = [0 if c == "." else int(c) for c in row[left : left + 8]]
        low.append(sum((v & 1) << (7 - i) for i, v in enumerate(values)))
        high.append(sum((v >> 1) << (7 - i) for i, v in enumerate(values)))
    return bytes(low + high)


def read_lines(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text().splitlines()
    numbered = ((line.rstrip(), f"{path.name}:{i}") for i, line in enumerate(lines, 1))
    return [(line, where) for line, where in numbered if line != "#" and not line.startswith("# ")]


def read_art(path: Path) -> list[Picture]:
    pictures: list[Picture] = []
    for line, where in read_lines(path):
        words = line.split()
        if words and words[0] in ("font", "tile", "block", "sprite"):
            pictures.append(Picture(words[0], words[1], words[2:], [], where))
        elif line:
            if not pictures:
                raise SourceError(f"{where}: pixels before the first picture")
            pictures[-1].rows.append(line)
    for picture in pictures:
        if "mirror" in picture.options:
            picture.rows = [row + row[::-1] for row in picture.rows]
        check_picture(picture)
    return pictures


def check_picture(picture: Picture) -> None:
    if picture.kind == "font":
        return
    size = {"tile": (8, 8), "block": (16, 16)}.get(picture.kind)
    width, height = len(picture.rows[0]) if picture.rows else 0, len(picture.rows)
    if size and (width, height) != size:
        raise SourceError(
            f"{picture.where}: {picture.name} should be {size[0]}x{size[1]}, is {width}x{height}"
        )
    if width % 8 or height % 8 or not height:
        raise SourceError(f"{picture.where}: {picture.name} is {width}x{height}, not whole tiles")
    for row in picture.rows:
        if len(row) != width or set(row) - set(".123"):
            raise SourceError(f"{picture.where}: {picture.name} has the bad row {row!r}")


def font_tiles(picture: Picture) -> list[tuple[str, bytes]]:
    """Glyphs side by side, 8 columns each, 7 rows; `#` is colour 2 on colour 1."""
    rows = [row.ljust(8 * len(picture.name), ".") for row in picture.rows] + ["." * 8 * len(picture.name)]
    if len(rows) != 8:
        raise SourceError(f"{picture.where}: a font line has 7 rows, found {len(rows) - 1}")
    inked = [row.replace("#", "2").replace(".", "1") for row in rows]
    return [(glyph, planes(inked, 8 * i, 0)) for i, glyph in enumerate(picture.name)]


def bytes_line(values: list[int] | bytes) -> str:
    values = list(values)
    return "\n".join(
        "  .byte " + ",".join(f"${v:02X}" for v in values[i : i + 24]) for i in range(0, len(values), 24)
    )


class Art:
    """All pictures with their tile numbers."""

    def __init__(self, folder: Path) -> None:
        self.background, self.sprites = Tiles(), Tiles()
        self.glyphs: dict[str, int] = {}
        self.named: dict[str, int] = {}
        self.blocks: list[tuple[Picture, list[int]]] = []
        self.sprite_list: list[tuple[Picture, list[int]]] = []
        pictures = [p for name in ("font", "tiles", "blocks", "sprites") for p in self.load(folder, name)]
        for picture in pictures:
            getattr(self, "add_" + picture.kind)(picture)
        self.block_number = {p.name: i for i, (p, _) in enumerate(self.blocks)}
        if len(self.blocks) > 63:
            raise SourceError(f"a map column holds block numbers 0-62, the art has {len(self.blocks)} blocks")

    @staticmethod
    def load(folder: Path, name: str) -> list[Picture]:
        return [p for path in sorted(folder.glob(name + "*.txt")) for p in read_art(path)]

    def add_font(self, picture: Picture) -> None:
        # Digits come first, so that a digit's value is its tile number.
        for glyph, tile in font_tiles(picture):
            self.glyphs[" " if glyph == "_" else glyph] = self.background.add(tile, fresh=True)

    def add_tile(self, picture: Picture) -> None:
        table = self.sprites if "sprite" in picture.options else self.background
        self.named[picture.name] = table.add(planes(picture.rows, 0, 0))

    def add_block(self, picture: Picture) -> None:
        tiles = [self.background.add(planes(picture.rows, x, y)) for y in (0, 8) for x in (0, 8)]
        self.blocks.append((picture, tiles))

    def add_sprite(self, picture: Picture) -> None:
        width, height = len(picture.rows[0]), len(picture.rows)
        tiles = [
            self.sprites.add(planes(picture.rows, x, y))
            for y in range(0, height, 8)
            for x in range(0, width, 8)
        ]
        self.sprite_list.append((picture, tiles))

    def include(self) -> str:
        out = ["; Made by convert.py from art/: names, metatile tables, sprite tables."]
        out += [f"TILE_{name.upper()} = ${number:02X}" for name, number in self.named.items()]
        out += [f"GLYPH_SPACE = ${self.glyphs[' ']:02X}", f"GLYPH_A = ${self.glyphs['A']:02X}"]
        out += [f"BLOCK_{p.name.upper()} = {i}" for i, (p, _) in enumerate(self.blocks)]
        out += [f"FLAG_{name.upper()} = ${bit:02X}" for name, bit in FLAGS.items()]
        for corner, label in enumerate(("tl", "tr", "bl", "br")):
            out += [f"block_{label}:", bytes_line([tiles[corner] for _, tiles in self.blocks])]
        out += ["block_palette:", bytes_line([p.palette() for p, _ in self.blocks])]
        out += [
            "block_flags:",
            bytes_line([sum(FLAGS[o] for o in p.options if o in FLAGS) for p, _ in self.blocks]),
        ]
        out += [f"SPRITE_{p.name.upper()} = {i}" for i, (p, _) in enumerate(self.sprite_list)]
        names = [p.name for p, _ in self.sprite_list]
        for half, sign in (("lo", "<"), ("hi", ">")):
            out += [f"sprite_{half}:"] + [f"  .byte {sign}sprite_{name}" for name in names]
        for picture, tiles in self.sprite_list:
            columns = len(picture.rows[0]) // 8
            out += [
                f"sprite_{picture.name}:",
                bytes_line([columns, len(tiles) // columns, picture.palette(), *tiles]),
            ]
        return "\n".join(out) + "\n"


def pack_column(column: list[int]) -> list[int]:
    """Runs of one block: bits 7-6 of the byte are length - 1, or both set and a length byte follows."""
    out, at = [], 0
    while at < len(column):
        run = 1
        while at + run < len(column) and column[at + run] == column[at]:
            run += 1
        out += [column[at] | (run - 1) << 6] if run <= 3 else [column[at] | LONG_RUN, run]
        at += run
    return out


@dataclass
class Level:
    options: dict[str, list[str]]
    columns: list[list[int]]
    spawns: list[tuple[int, int, int]]  # column, row, object type
    goal: int
    start: tuple[int, int]


def read_map(path: Path, art: Art) -> Level:
    options: dict[str, list[str]] = {}
    legend, objects = {".": 0}, {}
    columns: list[list[int]] = []
    spawns: list[tuple[int, int, int]] = []
    section: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    for line, where in [*read_lines(path), ("section", "end")]:
        words = line.split()
        if not words:
            continue
        if words[0] == "legend":
            if words[2] not in art.block_number:
                raise SourceError(f"{where}: no block {words[2]!r}; known: {', '.join(art.block_number)}")
            legend[words[1]] = art.block_number[words[2]]
        elif words[0] == "object":
            objects[words[1]] = OBJECTS.index(words[2])
        elif words[0] in ("palette", "music", "time", "embers", "name"):
            options.setdefault(words[0], []).extend(words[1:])
        elif words[0] == "section":
            if section and len(section) != ROWS:
                raise SourceError(f"{where}: the section before has {len(section)} rows, expected {ROWS}")
            for i in range(len(section[0]) if section else 0):
                column = []
                for row, text in enumerate(section):
                    if i >= len(text) or text[i] not in legend | objects:
                        raise SourceError(
                            f"{where}: section before, row {row}: nothing for column {i} in {text!r}"
                        )
                    if text[i] in objects:
                        kind = OBJECTS[objects[text[i]]]
                        if kind in PLACED_ONLY:
                            places[kind] = (len(columns), row)
                        else:
                            spawns.append((len(columns), row, objects[text[i]]))
                    column.append(legend.get(text[i], 0))
                columns.append(column)
            section = []
        else:
            section.append(line)
    if set(places) != PLACED_ONLY or not 32 <= len(columns) <= 232:
        raise SourceError(
            f"{path.name}: needs a start, a goal and 32-232 columns, has {places}, {len(columns)}"
        )
    return Level(options, columns, spawns, places["goal"][0], places["start"])


def level_include(levels: list[Level], art: Art) -> str:
    out = ["; Made by convert.py from maps/: column streams, spawn lists, palettes."]
    out += [f"OBJ_{name.upper()} = {i}" for i, name in enumerate(OBJECTS) if name not in PLACED_ONLY]
    rows = {
        "level_width": [len(level.columns) for level in levels],
        "level_goal": [level.goal for level in levels],
        "level_start_column": [level.start[0] for level in levels],
        "level_start_row": [level.start[1] for level in levels],
        "level_embers": [int(level.options.get("embers", ["0"])[0]) for level in levels],
    }
    for name, values in rows.items():
        out += [f"{name}:", bytes_line(values)]
    digits = [level.options["time"][0].rjust(3, "0") for level in levels]
    for place, name in enumerate(("hundreds", "tens", "ones")):
        out += [f"level_time_{name}:", bytes_line([int(d[place]) for d in digits])]
    out += ["level_music:"] + [f"  .byte SONG_{level.options['music'][0].upper()}" for level in levels]
    for table in ("columns", "spawns", "palette", "name"):
        for half, sign in (("lo", "<"), ("hi", ">")):
            out += [f"level_{table}_{half}:"] + [
                f"  .byte {sign}level{i}_{table}" for i in range(1, len(levels) + 1)
            ]
    for i, level in enumerate(levels, 1):
        stream: list[int] = []
        for at, column in enumerate(level.columns):
            stream += [REPEAT_COLUMN] if at and column == level.columns[at - 1] else pack_column(column)
        flat = [value for column, row, kind in level.spawns for value in (column, row << 4 | kind)]
        out += [f"level{i}_columns:", bytes_line(stream), f"level{i}_spawns:", bytes_line([*flat, 255])]
        out += [f"level{i}_palette:", bytes_line([int(v, 16) for v in level.options["palette"]])]
        name = " ".join(level.options["name"]).center(16)
        out += [f"level{i}_name:", bytes_line([art.glyphs[glyph] for glyph in name])]
    return "\n".join(out) + "\n"


def screen_bytes(path: Path, art: Art) -> tuple[bytes, list[int]]:
    """960 tiles, 64 attribute bytes, and the 32 palette bytes."""
    legend, palette, rows, tints = {}, [], [], {}
    for line, where in read_lines(path):
        words = line.split()
        if words and words[0] == "legend":
            legend[words[1]] = words[2]
        elif words and words[0] == "tint":
            tints[words[1]] = int(words[2])
        elif words and words[0] == "palette":
            palette += [int(v, 16) for v in words[1:]]
        elif line.startswith("|"):
            if len(line) != 34:
                raise SourceError(f"{where}: a screen row is |32 characters|, this one has {len(line) - 2}")
            rows.append(line[1:33])
    if len(rows) != 30:
        raise SourceError(f"{path.name}: a screen has 30 rows, found {len(rows)}")
    tiles, attributes = bytearray(), bytearray(64)
    for y, row in enumerate(rows):
        for x, char in enumerate(row):
            shade = tints.get(char, 0)
            if char in legend and legend[char] in art.block_number:
                picture, corners = art.blocks[art.block_number[legend[char]]]
                tiles.append(corners[(y & 1) * 2 + (x & 1)])
                shade = picture.palette()
            elif char in legend:
                tiles.append(art.named[legend[char]])
            elif char in art.glyphs:
                tiles.append(art.glyphs[char])
            else:
                raise SourceError(f"{path.name}: row {y}: no tile for {char!r}")
            # one palette a 16x16 square: any tinted character of the square decides
            attributes[(y >> 2) * 8 + (x >> 2)] |= shade << ((y & 2) * 2 + (x & 2))
    return bytes(tiles + attributes), palette


def screen_include(folder: Path, art: Art) -> str:
    out, paths = ["; Made by convert.py from screens/."], sorted(folder.glob("*.txt"))
    out += [f"SCREEN_{path.stem.upper()} = {i}" for i, path in enumerate(paths)]
    for table in ("screen", "screen_palette"):
        for half, sign in (("lo", "<"), ("hi", ">")):
            out += [f"{table}_{half}:"] + [f"  .byte {sign}{table}_{path.stem}" for path in paths]
    for path in paths:
        data, palette = screen_bytes(path, art)
        out += [f"screen_{path.stem}:", bytes_line(data), f"screen_palette_{path.stem}:", bytes_line(palette)]
    return "\n".join(out) + "\n"


def write_generated(source: Path, out: Path) -> None:
    """Write art.inc, levels.inc, screens.inc, music.inc and tiles.chr into `out`."""
    art = Art(source / "art")
    levels = [read_map(path, art) for path in sorted((source / "maps").glob("level*.txt"))]
    (out / "tiles.chr").write_bytes(art.background.image() + art.sprites.image())
    (out / "art.inc").write_text(art.include())
    (out / "levels.inc").write_text(level_include(levels, art))
    (out / "screens.inc").write_text(screen_include(source / "screens", art))
    try:
        music = convert_music.include(sorted((source / "music").glob("*.txt")))
    except ValueError as error:
        raise SourceError(str(error)) from error
    (out / "music.inc").write_text(music)
