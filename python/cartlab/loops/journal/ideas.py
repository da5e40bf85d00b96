"""`journal idea add|prune|list`: the bullets of autoresearch.ideas.md, people's and agents' own text.

A bullet is a line that begins with `- ` or `* `; whatever else stands in the file is left as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from cartlab import disk
from cartlab.errors import BadInput, UsageError
from cartlab.loops.commands import plain

HEAD = "# Ideas\n\n"
_BULLET = re.compile(r"^[-*] +(.+?)\s*$")
CAP = 500


def listed(path: Path) -> list[str]:
    """The ideas, in order; none where there is no file."""
    return [hit[1] for line in _text(path).split("\n") if (hit := _BULLET.match(line))]


def add(path: Path, text: str) -> str:
    """Append an idea; one that is there already (whatever its case) is not written twice."""
    words = " ".join(plain(text, CAP).split())
    if not words:
        raise UsageError("an idea needs words", 'journal idea add "cache the tile rows"')
    if words.casefold() not in (one.casefold() for one in listed(path)):
        old = _text(path) or HEAD
        disk.replace_bytes(
            disk.current(),
            path,
            (old.rstrip("\n") + ("\n\n" if old == HEAD else "\n") + f"- {words}\n").encode(),
        )
    return words


def prune(path: Path, which: list[str]) -> list[str]:
    """Take ideas out by number (from 1) or by a part of their text; what went. BadInput where one names none
    or several.
    """
    known = listed(path)
    gone: set[int] = set()
    for word in which:
        if word.isdecimal():
            hits = [int(word) - 1] if 0 < int(word) <= len(known) else []
        else:
            hits = [at for at, one in enumerate(known) if word.casefold() in one.casefold()]
        if len(hits) != 1:
            raise BadInput(
                f"expected one idea that {word!r} names, found {len(hits)}",
                "`journal idea list` numbers them",
            )
        gone.add(hits[0])
    kept: list[str] = []
    number = -1
    for line in _text(path).split("\n"):
        number += 1 if _BULLET.match(line) else 0
        if not (_BULLET.match(line) and number in gone):
            kept.append(line)
    disk.replace_bytes(disk.current(), path, "\n".join(kept).encode())
    return [known[at] for at in sorted(gone)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
