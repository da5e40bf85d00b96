"""Net lines of code of a patch: how much code a change adds, comments and blank lines aside. Pure."""

from __future__ import annotations

_COMMENTS = ("#", "//", "--", ";;", "/*", "*/", "* ", '"""', "'''", "<!--")
_PROSE = (".md", ".rst", ".txt", ".json", ".lock", ".csv", ".svg")


def net(patch: str) -> int:
    """Added minus removed lines of code in a unified diff; files of prose and data do not count."""
    total, counts, in_hunk = 0, False, False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            counts, in_hunk = not line.rstrip('"').endswith(_PROSE), False
        elif line.startswith("@@"):
            in_hunk = True
        elif in_hunk and counts and line[:1] in ("+", "-"):
            text = line[1:].strip()
            if text and not text.startswith(_COMMENTS) and text != "*":
                total += 1 if line[0] == "+" else -1
    return total
