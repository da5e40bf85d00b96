"""The plugin inside a suite under measurement: what was not loaded from the build fails the suite."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cartlab.measure import commands


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin as a suite would load it, for a build that provides three modules."""
    build = tmp_path / "build"
    (build / "packaged_part").mkdir(parents=True)
    for name in ("own_part.py", "packaged_part/__init__.py", "unnamed_part.so"):
        (build / name).write_text("")
    monkeypatch.setenv("CARTLAB_BUILD_DIR", str(build))
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = Path(commands.__file__).with_name(f"{commands.PLUGIN}.py")
    spec = importlib.util.spec_from_file_location("plugin_under_test", source)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    assert sys.path[0] == str(build)
    return found


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, file: Path | None) -> None:
    module = ModuleType(name)
    if file is not None:
        module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, name, module)


def test_what_came_from_elsewhere_fails_the_suite_and_is_named(
    plugin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(monkeypatch, "own_part", tmp_path / "build" / "own_part.py")
    loaded(monkeypatch, "unnamed_part", None)
    session = SimpleNamespace(exitstatus=0)
    plugin.pytest_sessionfinish(session)
    assert (plugin.strangers(), session.exitstatus, capsys.readouterr().out) == ([], 0, "")
    loaded(monkeypatch, "packaged_part", tmp_path / "checkout" / "packaged_part" / "__init__.py")
    plugin.pytest_sessionfinish(session)
    assert (plugin.strangers(), session.exitstatus) == (["packaged_part"], 4)
    assert "must import packaged_part from the build" in capsys.readouterr().out
