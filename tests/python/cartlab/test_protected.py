"""What a candidate for this repository may not touch, by the repository's own autoresearch.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_project import make

from cartlab import config, sources
from cartlab.errors import ComplianceFailed

REPOSITORY = Path(__file__).resolve().parents[3]
CHECK = REPOSITORY / "scripts" / "check_manifest.py"

WORKER = ["python/cartlab/slice_server.py", "scripts/workloads/nes_batch.py"]
CONTROLLER = ["python/cartlab/decide.py", "scripts/autoresearch.py", "autoresearch.toml"]
GATES = [
    "tests/python/rollcart/test_console.py",
    "tests/engine.rs",
    "tests/python/conftest.py",
    "python/rollcart/conftest.py",
    "pytest.ini",
    "pyproject.toml",
    "scripts/check_manifest.py",
]
PLAYED = ["python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes", "games/cart_runner/build.py"]
BEFORE_PYTHON = [
    "sitecustomize.py",
    "python/sitecustomize.py",
    "python/usercustomize.py",
    "python/x.pth",
    "pytest.py",
    "python/pytest/__init__.py",
    "json.py",
]
BEFORE_CARGO = [
    ".cargo/config.toml",
    ".cargo/config",
    "src/.cargo/config.toml",
    "build.rs",
    "crates/x/build.rs",
    "crates/x/Cargo.toml",
    "rust-toolchain.toml",
]


@pytest.fixture(scope="module")
def settings() -> config.Config:
    return config.load(REPOSITORY)


@pytest.mark.parametrize("name", [*WORKER, *CONTROLLER, *GATES, *PLAYED, *BEFORE_PYTHON, *BEFORE_CARGO])
def test_what_measures_gates_or_comes_before_them_is_protected(settings: config.Config, name: str) -> None:
    assert sources.protected_changes([name], settings.protected) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "src/lib.rs",
        "src/emulator/fast/cpu.rs",
        "Cargo.toml",
        "Cargo.lock",
        "python/rollcart/__init__.py",
        "docs/x.md",
    ],
)
def test_what_a_candidate_is_for_is_not(settings: config.Config, name: str) -> None:
    assert sources.protected_changes([name], settings.protected) == []


def test_a_commit_that_adds_a_protected_file_is_refused(settings: config.Config, tmp_path: Path) -> None:
    project = make(tmp_path / "repo")
    base = project.git("rev-parse", "HEAD")
    project.write("python/sitecustomize.py", "raise SystemExit(0)\n")
    cand = project.commit("in the way")
    with pytest.raises(ComplianceFailed, match=r"python/sitecustomize\.py"):
        sources.check_compliance(project.path, base, cand, settings.protected)


# --- the manifest


def manifest_check(folder: Path, text: str) -> tuple[int, str]:
    (folder / "Cargo.toml").write_text(text)
    done = subprocess.run(
        [sys.executable, str(CHECK), str(folder)], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout


OURS = (REPOSITORY / "Cargo.toml").read_text()


def test_the_manifest_as_it_stands_and_with_honest_changes_passes(tmp_path: Path) -> None:
    assert manifest_check(tmp_path, OURS) == (0, "")
    honest = OURS.replace("[dependencies]", '[dependencies]\nmemchr = "2"').replace(
        'lto = "off"', 'lto = "fat"'
    )
    assert honest.count("memchr") == 1 and 'lto = "fat"' in honest
    assert manifest_check(tmp_path, honest) == (0, "")


@pytest.mark.parametrize(
    ("after", "line", "named"),
    [
        ("[package]", "autotests = false", "package.autotests"),
        ("[package]", 'build = "src/other.rs"', "package.build"),
        ("[lib]", "test = false", "lib.test"),
        ("[lib]", "harness = false", "lib.harness"),
        ("[lib]", "proc-macro = true", "lib.proc-macro"),
        ("[features]", "python-off = []", "features.python-off"),
        ("[dependencies]", 'mine = { path = "src/mine" }', "dependencies.mine"),
        ("[dev-dependencies]", 'proptest2 = { git = "https://example.invalid/x" }', "proptest2"),
        ("", '[[test]]\nname = "engine"\nharness = false\n', "[test]"),
        ("", '[patch.crates-io]\nproptest = { path = "src/p" }\n', "[patch]"),
        ("", '[build-dependencies]\ncc = "1"\n', "[build-dependencies]"),
        ("", '[workspace]\nmembers = ["x"]\n', "[workspace]"),
    ],
)
def test_a_manifest_that_could_empty_the_tests_fails(
    tmp_path: Path, after: str, line: str, named: str
) -> None:
    text = OURS.replace(after, f"{after}\n{line}", 1) if after else f"{OURS}\n{line}"
    code, said = manifest_check(tmp_path, text)
    assert code == 1 and named in said and "below the baseline" in said


def test_without_a_manifest_the_check_says_what_it_expected_and_help_what_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "Cargo.toml").write_bytes(b"[package\xff")
    for folder in (tmp_path, tmp_path / "broken"):
        done = subprocess.run([sys.executable, str(CHECK), str(folder)], capture_output=True, text=True)
        assert done.returncode == 2 and f"expected a manifest at {folder}" in done.stderr
    helped = subprocess.run([sys.executable, str(CHECK), "--help"], capture_output=True, text=True)
    assert helped.returncode == 0 and "Cargo.toml" in helped.stdout


def test_both_native_checks_look_at_the_manifest_first(settings: config.Config) -> None:
    native = settings.surfaces["native"]
    for commands in (native.quick, native.full):
        assert "check_manifest.py" in commands[0] and len(commands) > 1
