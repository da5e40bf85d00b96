"""The sources need no newer Rust than Cargo.toml says.

Clippy knows from which release on a function of the library is there (`incompatible_msrv`), but nobody
tells when the language itself is newer. What newer language is within reach is listed here with the release
that brought it; a row goes when `rust-version` has passed it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
NEWER = {
    "an inferred length of an array": ((1, 89), re.compile(r";\s*_\s*\]")),
    "a chain of conditions with let": ((1, 88), re.compile(r"&&\s*let\b|\blet\b[^;{}=]*=[^;{}]*&&\s*let\b")),
}
CODE = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"")


def stated() -> tuple[int, int]:
    found = re.search(r'^rust-version = "(\d+)\.(\d+)', (TOP / "Cargo.toml").read_text(), re.M)
    assert found
    return int(found[1]), int(found[2])


def sources() -> list[Path]:
    return [path for folder in ("src", "tests") for path in sorted((TOP / folder).rglob("*.rs"))]


@pytest.mark.parametrize("name", NEWER)
def test_the_language_is_that_of_the_stated_version(name: str) -> None:
    since, pattern = NEWER[name]
    assert since > stated(), f"{name} is allowed now: its row can go"
    assert len(sources()) > 100
    for path in sources():
        found = pattern.search(CODE.sub("", path.read_text()))
        assert not found, (
            f"{path.relative_to(TOP)}: {found[0]!r} is {name}, in Rust since {since[0]}.{since[1]}"
        )


def test_what_is_looked_for_is_found() -> None:
    samples = ("Box::new([0; _])", "if let Some(a) = b && let Some(c) = d {")
    for (_, pattern), sample in zip(NEWER.values(), samples, strict=True):
        assert pattern.search(sample)
        assert not pattern.search(CODE.sub("", f"// {sample}"))
