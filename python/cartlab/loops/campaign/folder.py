"""A campaign's folder: its documents, the block in each that is ours, and how a document is written.

The folder is $AUTORESEARCH_RUNS_DIR/SLUG, else ~/autoresearch-runs/SLUG: people and agents write in it, so
nothing in it is believed. What we render stands between two comment lines; all text outside them is kept. A
file that has no such lines yet keeps its text, and the block follows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cartlab.disk import current, replace_bytes
from cartlab.errors import BadInput, BadRoot

VARIABLE = "AUTORESEARCH_RUNS_DIR"
DEFAULT = "autoresearch-runs"
BEGIN, END = "<!-- rendered from the ledger: edits here are lost -->", "<!-- end of the rendered part -->"
PREVIOUS_WORK = (
    "Current baseline",
    "What was tried and kept",
    "What was tried and dropped",
    "Open hypotheses / TODOs in the code",
    "Known fragile areas",
)
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"^(?P<key>[a-z_]+)\s*=\s*(?P<value>[^#]*?)\s*(?:#.*)?$")


def place(slug: str, environ: Mapping[str, str], repo: Path) -> Path:
    """The folder of a campaign. BadInput for a slug that is no plain name, BadRoot inside the repository."""
    if not _SLUG.fullmatch(slug):
        raise BadInput(
            f"a campaign's slug must be lower-case letters, digits, dots and dashes; found {slug!r}",
            "for example: faster-slope",
        )
    given = environ.get(VARIABLE, "").strip()
    home = Path(environ.get("HOME") or Path.home())
    above = home / DEFAULT if not given else home / given[2:] if given.startswith("~/") else Path(given)
    found = above.absolute() / slug
    real = found.resolve()
    if repo.resolve() in (real, *real.parents):
        raise BadRoot(
            f"a campaign's folder must lie outside the repository; found {real} in it",
            f"set {VARIABLE} to a folder elsewhere",
        )
    return found


@dataclass(frozen=True)
class Folder:
    """The documents of one campaign."""

    path: Path

    def read(self, name: str) -> str | None:
        """A document's text, None where there is none."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, text: str) -> bool:
        """Give a document this text, atomically, unless it has it; was there anything to write?"""
        if self.read(name) == text:
            return False
        disk = current()
        disk.make_folder(self.path)
        replace_bytes(disk, self.path / name, text.encode("utf-8"))
        return True

    def make(self, name: str, text: str) -> bool:
        """Write a document that is missing; one that is there keeps its bytes."""
        return self.read(name) is None and self.write(name, text)

    def render(self, name: str, body: str, head: str) -> bool:
        """Renew the rendered block of a document; head: what stands above it in a new one."""
        return self.write(name, with_block(self.read(name), body, head))


def with_block(old: str | None, body: str, head: str) -> str:
    """A document's text with this block in the place of its old one."""
    block = f"{BEGIN}\n{body.rstrip()}\n{END}\n"
    if old is None:
        return f"{head.rstrip()}\n\n{block}"
    at = old.find(BEGIN)
    end = old.find(END, at)
    if at < 0 or end < 0:
        return f"{old.rstrip()}\n\n{block}" if old.strip() else f"{head.rstrip()}\n\n{block}"
    return old[:at] + block + old[end + len(END) :].removeprefix("\n")


def with_sections(old: str | None, bodies: Mapping[str, str], head: str) -> str:
    """A document's text with one rendered block in each of these sections; missing sections are added."""
    text = head.rstrip() + "\n" if old is None or not old.strip() else old
    for name, body in bodies.items():
        hit = re.search(rf"^##+ {re.escape(name)}[ \t]*$", text, re.MULTILINE | re.IGNORECASE)
        if hit is None:
            text = f"{text.rstrip()}\n\n{with_block(None, body, f'## {name}')}"
            continue
        after = re.search(r"^#{1,2} ", text[hit.end() :], re.MULTILINE)
        end = hit.end() + after.start() if after else len(text)
        section = with_block(text[hit.start() : end], body, "")
        text = text[: hit.start()] + section.rstrip() + "\n" + ("\n" if after else "") + text[end:]
    return text


def without_block(text: str) -> str:
    """A document's text with the rendered lines empty: what people wrote, at its own line numbers."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda hit: "\n" * hit[0].count("\n"), text, flags=re.DOTALL)


def block_of(text: str) -> str:
    """The rendered part of a document, or all of it where it has none."""
    at = text.find(BEGIN)
    end = text.find(END, at)
    return text if at < 0 or end < 0 else text[at + len(BEGIN) : end]


def keys_of(text: str | None) -> dict[str, str]:
    """The `key = value` lines of a document."""
    hits = (_KEY.match(line.strip()) for line in (text or "").splitlines())
    return {hit["key"]: hit["value"].strip() for hit in hits if hit is not None}


# --- what a new folder holds ----------------------------------------------------------------------


def task_text(slug: str, task: str) -> str:
    """TASK.md."""
    return f"# Task: {slug}\n\n{task or '<!-- one paragraph: what is asked, unknowns, assumptions -->'}\n"


def previous_work_text() -> str:
    """PREVIOUS_WORK.md with its five headings."""
    lines = [
        "# Previous work",
        "",
        "<!-- a bullet each, with file:line, a commit or a URL; `- none` is one -->",
    ]
    for heading in PREVIOUS_WORK:
        lines += ["", f"## {heading}"]
    return "\n".join(lines) + "\n"


def research_text() -> str:
    """DEEPRESEARCH.md, empty."""
    return (
        "# Deep research\n\n"
        "<!-- bullets, each with a URL or file:line: methods, tricks, pitfalls, data -->\n\n"
        "## GitHub findings\n"
    )


def angles_text(angles: Mapping[str, str]) -> str:
    """IDEA_ANGLES.md: one section an angle."""
    lines = [
        "# Idea angles",
        "",
        "<!-- bullets below each; a spun idea ends with `(from PARENT by TRANSFORMATION)`; another section",
        "     such as `## L: name` adds an angle -->",
    ]
    for letter, name in angles.items():
        lines += ["", f"## {letter}: {name}"]
    return "\n".join(lines) + "\n"


def compute_text(provider: str, launcher: str, why: str) -> str:
    """COMPUTE.md."""
    lines = ["# Compute", "", f"provider = {provider}  # local | ray | command | none"]
    lines += [f"launcher = {launcher}"] if launcher else []
    return "\n".join([*lines, "", why]) + "\n"


def data_text(source: str, why: str) -> str:
    """DATA.md."""
    return (
        "\n".join(
            [
                "# Data",
                "",
                f"source = {source}",
                "train =        # globs of the training split's files in the experiment's folder",
                "held_out =     # globs of the held-out split's",
                "no_split =     # why there is no split to compare, where there is none",
                "",
                why,
            ]
        )
        + "\n"
    )
