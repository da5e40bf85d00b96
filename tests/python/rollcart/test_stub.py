"""The stub of the native module says what the binary has: names, kinds, parameters and defaults."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import rollcart
from rollcart import _native

STUB = Path(rollcart.__file__).with_name("_native.pyi")
# Special methods that the stub lists.
PROTOCOLS = {"__len__", "__getitem__", "__bytes__"}
# What every Python module or class has and no stub lists.
COMMON = set(dir(object)) | {"__all__", "__doc__", "__module__", "__weakref__", "__dict__"}


def parameters(function: ast.FunctionDef) -> list[tuple[str, str | None]]:
    """Names and defaults as text, without self; `*` as a name where keyword-only ones begin."""
    found: list[tuple[str, str | None]] = []
    positional = function.args.posonlyargs + function.args.args
    missing = len(positional) - len(function.args.defaults)
    for at, argument in enumerate(positional):
        default = function.args.defaults[at - missing] if at >= missing else None
        found.append((argument.arg, ast.unparse(default) if default else None))
    if function.args.kwonlyargs:
        found.append(("*", None))
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        found.append((argument.arg, ast.unparse(default) if default else None))
    return [row for row in found if row[0] not in ("self", "cls")]


def binary_parameters(function: object) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if parameter.kind is parameter.KEYWORD_ONLY and ("*", None) not in found:
            found.append(("*", None))
        # A default that is no Python value is shown as an ellipsis, in the binary and so in the stub.
        shown = "..." if parameter.default is ... else repr(parameter.default)
        default = None if parameter.default is parameter.empty else shown
        found.append((parameter.name, default))
    return [row for row in found if row[0] not in ("self", "cls")]


def described(node: ast.ClassDef) -> dict[str, object]:
    members: dict[str, object] = {}
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            is_property = any(
                isinstance(mark, ast.Name) and mark.id == "property" for mark in member.decorator_list
            )
            members[member.name] = "property" if is_property else parameters(member)
    return members


def present(cls: type) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, member in vars(cls).items():
        if name == "__new__":
            members["__init__"] = binary_parameters(cls)
        elif name in COMMON or (name.startswith("__") and name not in PROTOCOLS):
            continue
        elif inspect.isgetsetdescriptor(member):
            members[name] = "property"
        else:
            members[name] = binary_parameters(member)
    return members


def test_the_stub_and_the_binary_list_the_same() -> None:
    tree = ast.parse(STUB.read_text())
    classes = {node.name: described(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: parameters(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    native = {name: getattr(_native, name) for name in dir(_native) if not name.startswith("__")}
    assert sorted(classes) == sorted(name for name, value in native.items() if isinstance(value, type))
    assert sorted(functions) == sorted(name for name, value in native.items() if not isinstance(value, type))
    for name, members in classes.items():
        assert members == present(native[name]), name
    for name, expected in functions.items():
        assert expected == binary_parameters(native[name]), name


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert _native.__version__ == version("rollcart")
