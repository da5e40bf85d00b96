"""The files of one run: benchmarks/runs/RUN/{plan.json, aggregate.json, manifest.json, raw/block-NN.json,
build-SIDE.log}.

Copies for people and for `record`; the ledger stays the one truth. Every file is written whole and renamed
into place, the manifest last: a run folder without a manifest belongs to a run that did not end.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cartlab import disk
from cartlab.errors import BadInput
from cartlab.model import utf8

AGGREGATE_SCHEMA = "cartlab.aggregate/1"
MANIFEST_SCHEMA = "cartlab.manifest/1"


class RunFolder:
    """One run's folder; relative() is how its files are named in the ledger, so that a root can be moved."""

    def __init__(self, root: Path, run: str) -> None:
        self.root = root
        self.path = root / "benchmarks" / "runs" / run

    def relative(self, name: str) -> str:
        """The file's name below the root."""
        return (self.path / name).relative_to(self.root).as_posix()

    def write(self, name: str, value: Any) -> Path:
        """Write one JSON file whole, flushed to the disk."""
        return write_whole(
            self.path / name, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )

    def write_text(self, name: str, text: str) -> Path:
        return write_whole(self.path / name, text)

    def close(self, facts: dict[str, Any]) -> Path:
        """Write the manifest: every file's digest, and what the run was made with."""
        files = {
            path.relative_to(self.path).as_posix(): sha256_of(path)
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and path.name != "manifest.json"
        }
        return self.write("manifest.json", {"schema": MANIFEST_SCHEMA, "files": files, **facts})


def write_whole(path: Path, text: str) -> Path:
    """Write beside, flush, rename: a reader sees the old file or the new one."""
    disk.current().make_folder(path.parent)
    disk.replace_bytes(disk.current(), path, utf8(text))
    return path


def read_text(path: Path, what: str, hint: str = "") -> str:
    """A person's file; BadInput where there is none that can be read, or where it is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"expected {what} at {path}; {error.strerror}", hint) from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path.name} must be UTF-8 text; found {error.object[error.start]:#04x} at byte {error.start}",
            "save it as UTF-8",
        ) from None


def sha256_of(path: Path) -> str:
    """The file's sha256, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while piece := source.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
