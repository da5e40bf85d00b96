"""The subcommands, in the order in which a newcomer meets them. A row's first example is shown by --help."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """name: as typed. module: its file under rollcart.cli. examples: without the program's name."""

    name: str
    module: str
    summary: str
    examples: tuple[str, ...]


ROWS = (
    Row(
        "import",
        "import_",
        "find the ROMs of known games in folders and zips, and put them where they are looked for",
        (
            "import ~/roms",
            "import game.nes collection.zip --dry-run",
            "import ~/roms --into ~/retro-data --json",
        ),
    ),
)
BY_NAME = {row.name: row for row in ROWS}
