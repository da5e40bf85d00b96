"""Every test measures as if it were alone on the machine: its own lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from cartlab import lease


@pytest.fixture(autouse=True)
def own_lease(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("lease")
    monkeypatch.setenv(lease.VARIABLE, str(folder))
    return folder
