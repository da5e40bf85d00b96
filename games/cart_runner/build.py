#!/usr/bin/env python3
"""Build Cart Runner from its sources: the one command behind `make game` and `make game-check`.

Art, maps, screens and music are text; convert.py and its neighbours hold their formats and turn them
into ca65 include files and a CHR image; this script then calls ca65 and ld65. The result depends on the
sources alone, so two builds are equal byte for byte. Standard library only. States are made by
make_states.py.

    python3 games/cart_runner/build.py            rebuild the committed ROM and rom.sha
    python3 games/cart_runner/build.py --check    rebuild elsewhere and compare with the committed ROM
    python3 games/cart_runner/build.py --symbols FILE   also write the linker's label file (for debuggers)
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import convert  # noqa: E402  (a sibling of this script, found by the line above)

PACKAGE_DATA = HERE.parent.parent / "python" / "rollcart" / "data" / "stable" / "CartRunner-Nes-v0"
HEADER_BYTES = 16
ROM_BYTES = HEADER_BYTES + 0x8000 + 0x2000


class BuildError(Exception):
    """A build that cannot go on: the message says what was expected and what to try."""


def run_tool(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        raise BuildError(f"{command[0]} is not installed: try `apt-get install cc65`")
    result = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    if result.returncode:
        raise BuildError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")


def build(symbols: Path | None = None) -> bytes:
    """Return the bytes of the ROM, assembled in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        convert.write_generated(HERE, out)
        run_tool(
            [
                "ca65",
                "src/cart_runner.s",
                "-I",
                "src",
                "-I",
                str(out),
                "--bin-include-dir",
                str(out),
                "-o",
                str(out / "game.o"),
                "-g",
            ]
        )
        labels = symbols or out / "labels.txt"
        run_tool(
            ["ld65", "-C", "nrom.cfg", "-o", str(out / "rom.nes"), "-Ln", str(labels), str(out / "game.o")]
        )
        rom = (out / "rom.nes").read_bytes()
    if len(rom) != ROM_BYTES:
        raise BuildError(f"the ROM should have {ROM_BYTES} bytes, ld65 wrote {len(rom)}: look at nrom.cfg")
    return rom


def sha_line(rom: bytes) -> str:
    """Stable Retro's rom.sha: SHA-1 of everything after the iNES header."""
    return hashlib.sha1(rom[HEADER_BYTES:]).hexdigest() + "\n"


def check(rom: bytes) -> None:
    for name, expected in (("rom.nes", rom), ("rom.sha", sha_line(rom).encode())):
        path = PACKAGE_DATA / name
        found = path.read_bytes() if path.exists() else b""
        if found != expected:
            where = next(
                (i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b),
                min(len(found), len(expected)),
            )
            raise BuildError(
                f"committed {name} ({len(found)} bytes) differs from the sources ({len(expected)} "
                f"bytes) first at byte {where}: run `make game` and commit the result"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the Cart Runner ROM.")
    parser.add_argument("--check", action="store_true", help="compare with the committed ROM, write nothing")
    parser.add_argument("--symbols", type=Path, metavar="FILE", help="write the label file there")
    options = parser.parse_args()
    try:
        rom = build(options.symbols)
        if options.check:
            check(rom)
            print(f"game-check: the committed ROM is what the sources give ({sha_line(rom).strip()})")
        else:
            PACKAGE_DATA.mkdir(parents=True, exist_ok=True)
            (PACKAGE_DATA / "rom.nes").write_bytes(rom)
            (PACKAGE_DATA / "rom.sha").write_text(sha_line(rom))
            print(f"rom.nes written, SHA-1 {sha_line(rom).strip()}")
    except (BuildError, convert.SourceError) as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
