"""Where the rules of a Python source stand, and what the source looks like without one of them.

A rule is a condition, a comparison's edge, an operand of `and` / `or`, a raised error, or a call for its
effect. Text for people, progress, imports, assertions for the type checker and the endings of `with` are
none. One site is changed at a time: the rest of the file keeps its bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# Calls for their effect that no verdict and no record depends on: what is said, waited for or tidied up.
_TELLING = {"say", "warn", "progress", "print", "sleep", "suppress", "close", "rmtree", "remove"}
_EDGES: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}


@dataclass(frozen=True)
class Site:
    """One change: bytes [start, end) of the source become `by`. line is the first, `what` is for people."""

    line: int
    start: int
    end: int
    by: str
    what: str


def sites(source: str) -> list[Site]:
    """All changes that remove one rule each, in the order of the file."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def site(node: ast.AST, by: str, what: str) -> Site:
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        text = " ".join(data[start:end].decode().split())
        return Site(node.lineno, start, end, by, f"{what}: {text}")  # type: ignore[attr-defined]

    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in _within(function):
                found += [site(*change) for change in _changes(node)]
    return sorted(set(found), key=lambda one: (one.start, one.end, one.by))


def without(source: str, site: Site) -> str:
    """The source with that one change."""
    data = source.encode()
    return (data[: site.start] + site.by.encode() + data[site.end :]).decode()


def _within(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's own body; those of inner functions belong to these."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _within(child)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    if isinstance(node, ast.Raise):
        yield node, "pass", "raise"
    elif isinstance(node, ast.AugAssign):
        yield node, "pass", "update"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _tells(node.value):
        yield node, "pass", "call"
    elif isinstance(node, ast.If | ast.IfExp):
        yield node.test, "False", "never"
        yield node.test, "True", "always"
    elif isinstance(node, ast.BoolOp):
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        for operand in node.values:
            yield operand, neutral, "operand"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _EDGES:
        old, new = _EDGES[type(node.ops[0])]
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield node, f"({left} {new} {right})", f"edge {old} to {new}"


def _tells(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _TELLING
