"""A check of the native surface: does Cargo.toml leave the tests what they are?

    python scripts/check_manifest.py [FOLDER]

A candidate may change dependencies and profiles, since that is honest work on speed. Keys that make cargo
skip tests, run something else in their place, or run a build script are refused: with them `cargo test`
could pass without testing anything. Cargo's own settings (.cargo) and other manifests are protected paths.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

# Table -> the keys that it may have; a table that is not here is refused, except for those in FREE.
KEYS = {
    "package": {"name", "version", "edition", "rust-version", "description", "license", "publish"},
    "lib": {"name", "crate-type"},
    "features": {"python", "jit", "lua", "default"},
}
FREE = ("dependencies", "dev-dependencies", "profile", "lints")


def faults(manifest: dict[str, Any]) -> list[str]:
    """What the manifest has that it may not have."""
    found = [f"[{table}]" for table in manifest if table not in (*KEYS, *FREE)]
    for table, allowed in KEYS.items():
        found += [f"{table}.{key}" for key in manifest.get(table, {}) if key not in allowed]
    for table in ("dependencies", "dev-dependencies"):
        for name, wanted in manifest.get(table, {}).items():
            if isinstance(wanted, dict) and {"path", "git", "registry"} & set(wanted):
                found.append(f"{table}.{name} from another place than the registry")
    return found


def main(argv: list[str] | None = None) -> int:
    """0 where the manifest is as it should be, 1 with one line a fault, 2 where there is none to read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where Cargo.toml is (.)")
    place = parser.parse_args(argv).folder / "Cargo.toml"
    try:
        manifest = tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"expected a manifest at {place}, found: {error}")
    found = faults(manifest)
    for fault in found:
        print(f"Cargo.toml may not have {fault}: it could change what `cargo test` runs")
    if found:
        print("commit it below the baseline: what fails there too does not count against a candidate")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
