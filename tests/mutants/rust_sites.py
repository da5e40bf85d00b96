"""Where the rules of a Rust source stand. The source is as rustfmt leaves it, which stands in for a parser.

A rule is the condition of an `if` or of a match arm, an operand of `&&` / `||`, a comparison's edge, or a
statement for its effect: a call, an assignment, a `return`. Text, attributes, declarations, assertions and
unit tests are none. What is found by its looks may not compile without its rule: such a change says nothing,
and who tries it passes over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sites import Site

_TESTS = re.compile(r"^#\[cfg\(test\)\]\s*mod ", re.M)
# What text looks like: comments, strings, characters. A lifetime is none: no second quote follows.
_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|r#".*?"#|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.S)
_EDGES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_STATEMENT = re.compile(r"(?<=[{};])\s*\n[ \t]+(?=[a-z*&(<])")
_NO_RULE = re.compile(
    r"(?:let|use|const|static|type|pub|fn|mod|impl|struct|enum|if|for|while|loop|match|unsafe|else|where"
    r"|unreachable|panic|drop)\b|[a-z_]+: |\w+ =>"
)
_OPENS, _CLOSES = "([{", ")]}"


def rust_sites(source: str) -> list[Site]:
    """All changes that remove one rule each, in the order of the file; offsets are of the UTF-8 bytes."""
    end = _TESTS.search(source)
    code = _masked(source[: end.start()] if end else source)
    found = [*_conditions(code), *_operands(code), *_edges(code), *_statements(code)]
    return sorted({_site(source, *change) for change in found}, key=lambda one: (one.start, one.end, one.by))


def _masked(source: str) -> str:
    """The source with all text blank, each character in its place."""

    def blank(text: str) -> str:
        return re.sub(r"[^\n]", " ", text)

    code = _TEXT.sub(lambda text: blank(text[0]), source)
    for found in re.finditer(r"\b(?:debug_)?assert\w*!\(", code):
        end = _until(code, found.end(), ())
        code = code[: found.start()] + blank(code[found.start() : end]) + code[end:]
    return code


def _site(source: str, start: int, end: int, by: str, what: str) -> Site:
    text = " ".join(source[start:end].split())
    first = len(source[:start].encode())
    return Site(
        source.count("\n", 0, start) + 1,
        first,
        first + len(source[start:end].encode()),
        by,
        f"{what}: {text}",
    )


def _until(code: str, start: int, ends: tuple[str, ...]) -> int:
    """Where, outside inner brackets, one of `ends` stands, or the brackets around start close."""
    depth = 0
    for at in range(start, len(code)):
        if depth == 0 and code.startswith(ends, at):
            return at
        if code[at] in _OPENS:
            depth += 1
        elif code[at] in _CLOSES:
            depth -= 1
            if depth < 0:
                return at
    return len(code)


def _since(code: str, end: int, begins: tuple[str, ...]) -> int:
    """Where what ends before `end` begins: behind one of `begins`, or where the brackets around it open."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if code[at] in _CLOSES:
            depth += 1
        elif code[at] in _OPENS:
            depth -= 1
            if depth < 0:
                return at + 1
        elif depth == 0:
            for begin in begins:
                # An = of another operator begins nothing.
                if code.startswith(begin, at) and not (begin == "= " and code[at - 1] in "<>=!"):
                    return at + len(begin)
    return 0


def _conditions(code: str) -> Iterator[tuple[int, int, str, str]]:
    for found in re.finditer(r"\bif ", code):
        start = found.end()
        end = _until(code, start, ("{", " =>"))
        condition = code[start:end].rstrip()
        if re.search(r"\blet\b", condition) or not condition:
            continue
        for by, what in (("false", "never"), ("true", "always")):
            yield start, start + len(condition), by, what


def _operands(code: str) -> Iterator[tuple[int, int, str, str]]:
    begins = ("&& ", "|| ", "if ", "= ", "=> ", "| ", ", ", "; ", "return ", "while ")
    for found in re.finditer(r"(?<=\s)(?:&&|\|\|)(?=\s)", code):
        if found[0] == "||" and re.search(
            r"(?:[=(,]|\b(?:move|mut|return))$", code[: found.start()].rstrip()
        ):
            continue  # a closure
        neutral = "true" if found[0] == "&&" else "false"
        ends = ("&&", "||", "{", ",", ";", "=>", "\n\n")
        right = found.end() + len(code[found.end() :]) - len(code[found.end() :].lstrip())
        stop = _until(code, right, ends)
        left = _since(code, found.start(), begins)
        left += len(code[left:]) - len(code[left:].lstrip())
        for start, end in ((left, found.start()), (right, stop)):
            text = code[start:end].rstrip()
            if text and not re.search(r"\blet\b", text):
                yield start, start + len(text), neutral, "operand"


def _edges(code: str) -> Iterator[tuple[int, int, str, str]]:
    for found in re.finditer(r"(?<= )(?:<=?|>=?)(?= )", code):
        yield found.start(), found.end(), _EDGES[found[0]], f"edge {found[0]} to {_EDGES[found[0]]}"


def _statements(code: str) -> Iterator[tuple[int, int, str, str]]:
    for found in _STATEMENT.finditer(code):
        start = found.end()
        if _NO_RULE.match(code, start):
            continue
        end = _until(code, start, (";",))
        if code[end : end + 1] != ";" or "{\n" in code[start:end].partition("(")[0]:
            continue
        word = re.match(r"return\b", code[start:])
        what = "return" if word else "update" if re.search(r" \S?= ", code[start:end]) else "call"
        yield start, end + 1, "", what
