"""The wheel that users install: both packages, the game's data, the native module, and no test or script.

maturin drops a second package silently unless `python-packages` names it, hence this test.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """File names in a wheel of the working tree; cargo's target folder is shared with `make build`."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "maturin", "build", "--release", "-q", "-o", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = out.glob("*.whl")
    assert "-cp310-abi3-" in wheel.name, wheel.name
    return zipfile.ZipFile(wheel).namelist()


def test_the_wheel_holds_both_packages_and_the_native_module(names: list[str]) -> None:
    for package in ("rollcart", "cartlab"):
        for source in (ROOT / "python" / package).rglob("*.py"):
            assert str(source.relative_to(ROOT / "python")) in names
    assert [n for n in names if n.startswith("rollcart/_native")], names


def test_the_wheel_holds_the_bundled_game(names: list[str]) -> None:
    game = "rollcart/data/stable/CartRunner-Nes-v0/"
    for file in ("rom.nes", "rom.sha", "data.json", "scenario.json", "metadata.json"):
        assert game + file in names


def test_the_wheel_holds_no_test_and_no_script(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"rollcart", "cartlab"}
