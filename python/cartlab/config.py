"""autoresearch.toml: what cartlab knows about a repository, read once and checked.

Contract: docs/benchmarking.md. Every key is a row of the tables below; a key that is
in no table is an error, and so is a value of another type. Paths are globs relative to the repository's
top; commands are one shell line each. What the values mean is the business of sources, measure and checks.
"""

from __future__ import annotations

import difflib
import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput
from cartlab.model import HELD_OUT, Workload

FILE = "autoresearch.toml"
KINDS = ("slices", "command", "pytest-benchmark")
DIRECTIONS = ("higher", "lower")

_REQUIRED = object()
_TIMEOUT = "timeout_s"
# Ten years: no wait of the system's takes more.
_FOREVER_S = 10 * 366 * 86400.0

Keys = Mapping[str, tuple[type, Any]]


@dataclass(frozen=True)
class BuildSpec:
    """How a source tree becomes a package.

    command runs in the exported tree with CARTLAB_BUILD_DIR (to be filled; it goes first on sys.path),
    CARTLAB_PYTHON and CARGO_TARGET_DIR set; artifact: glob of the one native file in CARTLAB_BUILD_DIR;
    inputs: globs of the paths that a build depends on (empty: all); env: further variables.
    """

    command: str
    artifact: str
    inputs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 1800.0


@dataclass(frozen=True)
class Surface:
    """A part of the product and the commands that check it. paths: globs that choose it under `auto`."""

    name: str
    paths: tuple[str, ...]
    quick: tuple[str, ...]
    full: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """The whole file. path: where it was read from, None for text."""

    path: Path | None
    project: str
    build: BuildSpec
    workloads: Mapping[str, Workload]
    default_workload: str
    surfaces: Mapping[str, Surface]
    checks_timeout_s: float
    protected: tuple[str, ...]
    contract: tuple[str, ...]
    layout_command: str | None
    notify: str | None

    def workload(self, name: str | None = None, params: Mapping[str, Any] | None = None) -> Workload:
        """A workload by name (None: the default one) with some of its params replaced; BadInput for no such
        name.
        """
        wanted = name or self.default_workload
        if wanted not in self.workloads:
            raise BadInput(
                f"the workload must be one of {', '.join(self.workloads)}; found {wanted!r}",
                f"name one of them, or add [workload.NAME] to {FILE}",
            )
        chosen = self.workloads[wanted]
        if not params:
            return chosen
        return Workload(**{**chosen.__dict__, "params": {**chosen.params, **params}})


# Each table: key -> (type, default). `list` is a list of strings, `dict` a table of any values.
_TOP: Keys = {
    "schema": (int, _REQUIRED), "default_workload": (str, ""), "notify": (str, None),
    "project": (dict, _REQUIRED), "build": (dict, _REQUIRED), "workload": (dict, _REQUIRED),
    "checks": (dict, {}), "surfaces": (dict, {}), "protected": (dict, {}), "contract": (dict, {}),
    "layout": (dict, {}),
}  # fmt: skip
_PROJECT: Keys = {"name": (str, _REQUIRED)}
_BUILD: Keys = {
    "command": (str, _REQUIRED), "artifact": (str, _REQUIRED), "inputs": (list, []), "env": (dict, {}),
    "timeout_s": (float, 1800.0),
}  # fmt: skip
_WORKLOAD: Keys = {
    "kind": (str, "slices"), "command": (str, _REQUIRED), "metric": (str, _REQUIRED),
    "direction": (str, "higher"), "unit": (str, ""), "verify": (int, 0), "params": (dict, {}),
    "guards": (bool, False),
}  # fmt: skip
_SURFACE: Keys = {"paths": (list, _REQUIRED), "quick": (list, _REQUIRED), "full": (list, _REQUIRED)}
_CHECKS: Keys = {"timeout_s": (float, 3600.0)}
_PATHS: Keys = {"paths": (list, [])}
_LAYOUT: Keys = {"command": (str, None)}


def load(repo: Path) -> Config:
    """Read the file at a repository's top; BadInput says what is wrong and where."""
    path = repo / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"{FILE} must stand at the repository's top; {error.strerror or error}",
            "write one: docs/benchmarking.md lists its keys",
        ) from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{FILE} must be UTF-8 text; found {error.object[error.start]:#04x} at byte {error.start}",
            _correct(path),
        ) from None
    return parse(text, path)


def notifier(repo: Path) -> str | None:
    """`notify` alone: a loop's repository needs no build and no workload. None where there is no file or no
    such key; BadInput for a file that is no TOML.
    """
    path = repo / FILE
    if not path.is_file():
        return None
    found = _toml(path.read_text(encoding="utf-8", errors="replace"), path).get("notify")
    return found if isinstance(found, str) and found.strip() else None


def _toml(text: str, path: Path | None) -> dict[str, Any]:
    # The standard library has a reader from Python 3.11 on.
    tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{FILE} must be TOML; it is nested too deeply", _correct(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{FILE} must be TOML; {error}", _correct(path)) from None
    return found


def parse(text: str, path: Path | None = None) -> Config:
    """The same from text."""
    raw = _toml(text, path)
    # Before the keys: another schema has others.
    if type(raw.get("schema")) is int and raw["schema"] != 1:
        raise BadInput(
            f"{FILE}: schema must be 1; found {raw['schema']}", "update cartlab, or write schema = 1"
        )
    top = _table(raw, _TOP, "", path)
    build = _table(top["build"], _BUILD, "build", path)
    parts = build["artifact"].split("/")
    if build["artifact"].startswith("/") or {"", ".", ".."} & set(parts):
        raise BadInput(
            f"{FILE}: build.artifact must name a file below CARTLAB_BUILD_DIR; found {build['artifact']!r}",
            _correct(path),
        )
    for key, value in build["env"].items():
        if not isinstance(value, str):
            raise BadInput(f"{FILE}: build.env.{key} must be text; found {value!r}", _correct(path))
    workloads = {name: _workload(name, body, path) for name, body in top["workload"].items()}
    if not workloads:
        raise BadInput(f"{FILE} must define at least one [workload.NAME]; found none", _correct(path))
    default = top["default_workload"] or next(iter(workloads))
    if default not in workloads:
        raise BadInput(
            f"{FILE}: default_workload must be one of {', '.join(workloads)}; found {default!r}",
            _correct(path),
        )
    return Config(
        path=path,
        project=_table(top["project"], _PROJECT, "project", path)["name"],
        build=BuildSpec(**{**build, "inputs": tuple(build["inputs"])}),
        workloads=workloads,
        default_workload=default,
        surfaces={name: _surface(name, body, path) for name, body in top["surfaces"].items()},
        checks_timeout_s=_table(top["checks"], _CHECKS, "checks", path)["timeout_s"],
        protected=tuple(_table(top["protected"], _PATHS, "protected", path)["paths"]),
        contract=tuple(_table(top["contract"], _PATHS, "contract", path)["paths"]),
        layout_command=_table(top["layout"], _LAYOUT, "layout", path)["command"],
        notify=top["notify"],
    )


def _workload(name: str, body: Any, path: Path | None) -> Workload:
    where = f"workload.{name}"
    row = _table(body, _WORKLOAD, where, path)
    for key, allowed in (("kind", KINDS), ("direction", DIRECTIONS)):
        if row[key] not in allowed:
            raise BadInput(
                f"{FILE}: {where}.{key} must be one of {', '.join(allowed)}; found {row[key]!r}",
                _correct(path),
            )
    if HELD_OUT in row["params"]:
        raise BadInput(
            f"{FILE}: {where}.params.{HELD_OUT} is the controller's own: a confirm run draws it",
            "give the param another name",
        )
    if row["verify"] < 0:
        raise BadInput(f"{FILE}: {where}.verify must be 0 or more; found {row['verify']}", _correct(path))
    if row["kind"] != "slices":
        _processes(row["params"], f"{where}.params", path)
    verify_steps = row.pop("verify")
    return Workload(name=name, verify_steps=verify_steps, **row)


def _processes(params: Mapping[str, Any], where: str, path: Path | None) -> None:
    """The two params that the controller itself takes where a workload is whole processes."""
    runs = params.get("runs", 2)
    if type(runs) is not int or runs < 2 or runs % 2:
        raise BadInput(
            f"{FILE}: {where}.runs must be an even number of at least 2; found {runs!r}",
            _correct(path),
        )
    if "timeout_s" in params:
        _limit(params["timeout_s"], f"{where}.timeout_s", path)


def _limit(value: Any, where: str, path: Path | None) -> None:
    """A number of seconds that a process may be waited for."""
    if type(value) not in (int, float) or not 0 < value < _FOREVER_S:
        raise BadInput(f"{FILE}: {where} must be seconds above 0; found {value!r}", _correct(path))


def _surface(name: str, body: Any, path: Path | None) -> Surface:
    row = _table(body, _SURFACE, f"surfaces.{name}", path)
    for key in ("quick", "full"):
        if not row[key]:
            raise BadInput(
                f"{FILE}: surfaces.{name}.{key} must hold at least one command; found none", _correct(path)
            )
    return Surface(name, tuple(row["paths"]), tuple(row["quick"]), tuple(row["full"]))


def _table(body: Any, keys: Keys, where: str, path: Path | None) -> dict[str, Any]:
    """Check one table against its row of keys; returns every key with its value or default."""
    if not isinstance(body, dict):
        raise BadInput(f"{FILE}: {where} must be a table; found {body!r}", _correct(path))
    prefix = f"{where}." if where else ""
    for key in body:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(keys)}"
            raise BadInput(f"{FILE}: unknown key {prefix}{key}", hint)
    out: dict[str, Any] = {}
    for key, (kind, default) in keys.items():
        if key not in body:
            if default is _REQUIRED:
                raise BadInput(f"{FILE} must set {prefix}{key}", _correct(path))
            out[key] = default
            continue
        value = body[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        strings = kind is not list or (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
        )
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool) or not strings:
            wanted = _WORDS.get(kind, "a number")
            raise BadInput(
                f"{FILE}: {prefix}{key} must be {wanted}; found {json.dumps(value, default=str)}",
                _correct(path),
            )
        if key == _TIMEOUT:
            _limit(value, f"{prefix}{key}", path)
        out[key] = value
    return out


_WORDS: Mapping[type, str] = {
    list: "a list of texts", str: "text", dict: "a table", bool: "true or false",
}  # fmt: skip


def _correct(path: Path | None) -> str:
    return f"correct {path.name if path else FILE}"
