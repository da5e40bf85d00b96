"""Who may import whom: ARCHITECTURE.md's tables, held against the sources.

Rust edges are the `crate::`, `super::` and `use` paths between rooms of the crate; Python edges are the
import statements (ast). A new room or module fails here until it has a row: its place is a decision.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Room of the crate -> the rooms it may name. `reference` and `fast` share facts, never behaviour.
ROOMS: dict[str, set[str]] = {
    "nes": set(),
    "cart": {"nes"},
    "engine": {"nes", "cart"},
    "reference": {"nes", "cart", "engine"},
    "fast": {"nes", "cart", "engine"},
    "game": {"nes"},
    "vec_env": {"nes", "cart", "engine", "reference", "fast", "game"},
    "py_api": {"nes", "cart", "engine", "reference", "fast", "game", "vec_env"},
}
# Where `unsafe` may stand: generated code's memory and calls, SIMD kernels, what threads share of a call, the
# Python boundary.
UNSAFE_ROOMS = (
    "emulator/fast/jit",
    "emulator/fast/render/simd",
    "vec_env/crew",
    "vec_env/deal",
    "vec_env/observe/simd",
    "py_api",
)

# Layers of cartlab, lowest first; a module imports lower layers only. slice_server stands outside: it runs
# by path, alone.
LAYERS: list[set[str]] = [
    {"model", "errors", "processes", "disk", "outcome", "words", "landlock"},
    {"stats", "decide", "legacy", "sources", "host", "lease", "config", "root", "artefacts", "glance"},
    {
        "measure",
        "plan",
        "ledger",
        "report",
        "checks",
        "simulate",
        "verify",
        "advice",
        "fastforward",
        "bisection",
        "garbage",
    },
    {"round", "exchange"},
    {"pipeline"},
    {"loops"},
    {"cli"},
    {"__main__"},
]
PURE = ("stats", "decide", "plan", "report", "simulate", "bisection")
IMPURE = {
    "os",
    "io",
    "pathlib",
    "subprocess",
    "time",
    "datetime",
    "socket",
    "shutil",
    "tempfile",
    "random",
    "sys",
}
MAX_LINES = 600


def tracked(*suffixes: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    names = listed.stdout.splitlines()
    return [ROOT / n for n in names if n.endswith(suffixes) and (ROOT / n).is_file()]


# ---------------------------------------------------------------------------------------------- Rust


def rust_code(path: Path) -> str:
    """The source without comments and string contents."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|b?r#".*?"#|b?"(?:\\.|[^"\\])*"', " ", path.read_text(), flags=re.S)


def module_of(path: Path) -> list[str]:
    parts = list(path.relative_to(ROOT / "src").with_suffix("").parts)
    return [] if parts == ["lib"] else parts


def room_of(module: list[str]) -> str | None:
    """The room a module path lies in; None for the crate's map (lib.rs, emulator.rs)."""
    if module[:1] == ["emulator"]:
        module = module[1:]
    return module[0] if module else None


def expand(tree: str, prefix: str = "") -> Iterator[str]:
    """`a::{b, c::{d, e}}` -> a::b, a::c::d, a::c::e."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield prefix + tree
        return
    depth, item = 0, ""
    for ch in rest[: rest.rindex("}")]:
        depth += (ch == "{") - (ch == "}")
        if ch == "," and depth == 0:
            yield from expand(item, prefix + head)
            item = ""
        else:
            item += ch
    if item:
        yield from expand(item, prefix + head)


def rust_edges(path: Path) -> Iterator[str]:
    here, code = module_of(path), rust_code(path)
    uses = re.findall(r"\buse\s+([^;]+);", code)
    plain = re.sub(r"\buse\s+[^;]+;", " ", code)
    paths = [p for use in uses for p in expand(re.sub(r"\s", "", use))]
    paths += re.findall(r"\b(?:crate|super)(?:\s*::\s*\w+)+", plain)
    for text in paths:
        parts = re.sub(r"\s", "", text).split("::")
        if parts[0] == "super":
            # A nested `mod tests` has one level more than its file: resolve from the outermost reading.
            ups = sum(p == "super" for p in parts)
            base = here[: len(here) - ups] if len(here) >= ups else []
            target = room_of(base + parts[ups:])
        elif parts[0] == "crate":
            target = room_of(parts[1:])
        else:
            continue
        if target is not None:
            yield target


def test_every_room_of_the_crate_imports_only_the_rooms_below_it() -> None:
    faults = []
    for path in tracked(".rs"):
        if not path.is_relative_to(ROOT / "src"):
            continue
        room = room_of(module_of(path))
        if room is None:
            continue
        assert room in ROOMS, f"{path.relative_to(ROOT)}: give the room {room!r} a row in ROOMS"
        for target in rust_edges(path):
            if target in ROOMS and target != room and target not in ROOMS[room]:
                faults.append(f"{path.relative_to(ROOT)}: {room} names {target}")
    assert not faults, "\n".join(faults)


def test_the_edge_finder_sees_grouped_and_relative_paths(tmp_path: Path) -> None:
    assert list(expand("crate::emulator::{nes::{a,b},cart}")) == [
        "crate::emulator::nes::a",
        "crate::emulator::nes::b",
        "crate::emulator::cart",
    ]
    assert room_of(["emulator", "fast", "cpu"]) == "fast" and room_of(["vec_env"]) == "vec_env"


def test_only_py_api_names_pyo3_or_numpy() -> None:
    faults = [
        str(path.relative_to(ROOT))
        for path in tracked(".rs")
        if re.search(r"\b(pyo3|numpy)\b", rust_code(path)) and room_of(module_of(path)) != "py_api"
    ]
    assert not faults, faults


def test_unsafe_stands_only_in_the_modules_that_need_it() -> None:
    faults = [
        str(path.relative_to(ROOT))
        for path in tracked(".rs")
        if path.is_relative_to(ROOT / "src")
        and re.search(r"\bunsafe\b", rust_code(path))
        and not str(path.relative_to(ROOT / "src")).startswith(UNSAFE_ROOMS)
    ]
    assert not faults, faults


# -------------------------------------------------------------------------------------------- Python


def imports(path: Path, package: str) -> Iterator[str]:
    """Absolute dotted names of all imports in a file of `package`, also those inside functions."""
    here = path.relative_to(ROOT / "python").with_suffix("").parts if package else ()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            stem = ".".join(filter(None, [base, node.module or ""]))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def cartlab_files() -> list[tuple[str, Path]]:
    """(module below cartlab, file); a package's files all count as the package."""
    top = ROOT / "python" / "cartlab"
    return [
        (path.relative_to(top).with_suffix("").parts[0], path)
        for path in tracked(".py")
        if path.is_relative_to(top) and path != top / "__init__.py"
    ]


def test_cartlab_modules_import_lower_layers_only() -> None:
    level = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    faults = []
    for module, path in cartlab_files():
        if module == "slice_server":
            continue
        assert module in level, f"python/cartlab/{module}: give it a place in LAYERS"
        for name in imports(path, "cartlab"):
            parts = name.split(".")
            if parts[0] == "cartlab" and len(parts) > 1 and parts[1] in level and parts[1] != module:
                if level[parts[1]] >= level[module]:
                    faults.append(f"{path.relative_to(ROOT)}: {module} imports {parts[1]}")
            elif parts[:2] == ["cartlab", "slice_server"]:
                faults.append(f"{path.relative_to(ROOT)}: slice_server runs by path, never imported")
    assert not faults, "\n".join(faults)


def test_cartlab_never_imports_rollcart() -> None:
    for _, path in cartlab_files():
        named = {name.split(".")[0] for name in imports(path, "cartlab")}
        assert "rollcart" not in named, path


def test_the_deciding_modules_do_no_io() -> None:
    for module, path in cartlab_files():
        if module not in PURE:
            continue
        named = {name.split(".")[0] for name in imports(path, "cartlab")}
        assert not named & IMPURE, f"{path.relative_to(ROOT)} imports {sorted(named & IMPURE)}"
        calls = {
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        assert not calls & {"open", "print", "input"}, f"{path.relative_to(ROOT)} calls {sorted(calls)}"


def test_the_slice_server_needs_the_standard_library_alone() -> None:
    server = ROOT / "python" / "cartlab" / "slice_server.py"
    if server.exists():
        named = {name.split(".")[0] for name in imports(server, "")}
        assert named <= sys.stdlib_module_names, sorted(named - sys.stdlib_module_names)


# ------------------------------------------------------------------------------------------- the tree


def test_no_source_file_is_longer_than_one_idea() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {n} lines"
        for path in tracked(".rs", ".py", ".s", ".toml", ".md")
        if (n := path.read_bytes().count(b"\n")) > MAX_LINES
    ]
    assert not long, "\n".join(long)


def test_scripts_is_no_package() -> None:
    assert not (ROOT / "scripts" / "__init__.py").exists()


# ------------------------------------------------------------------------------------ the repository


def test_no_link_leads_out_of_the_repository_and_no_file_names_a_place_of_one_machine() -> None:
    """A link to some cache, or a path of whoever wrote the file, is nothing to anybody else."""
    listed = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    links = [row.partition("\t")[2] for row in listed.split("\0") if row.startswith("120000")]
    leaving = [name for name in links if not (ROOT / name).resolve().is_relative_to(ROOT)]
    assert leaving == []
    place = re.compile(r"/(?:root|home/\w+|Users/\w+)/\.?\w")
    named = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in tracked(".py", ".rs", ".md", ".toml", ".json", ".lock", ".sh", "Makefile")
        if (hit := place.search(path.read_text(encoding="utf-8", errors="replace")))
        and not path.is_relative_to(ROOT / "tests")  # where redaction is tested on made-up ones
    ]
    assert named == []
