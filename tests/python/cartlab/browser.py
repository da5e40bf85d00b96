"""Headless Chromium (Debian's package `chromium`) for tests that look at a page: what it renders, draws and
complains about.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Whatever needs the network fails at once and says so.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--enable-logging=stderr",
    OFFLINE,
)
LIMIT_S = 180


@dataclass(frozen=True)
class Browser:
    """One installed browser. profile: a folder of its own, so that nothing of the user's is touched."""

    program: str
    profile: Path

    def dom(self, page: Path | str, width: int = 1200, dark: bool = False) -> tuple[str, list[str]]:
        """The document as it stands after loading, and what the console said."""
        done = self._run("--dump-dom", page=page, width=width, height=900, dark=dark)
        return done.stdout, console(done.stderr)

    def picture(self, page: Path | str, out: Path, width: int, height: int, dark: bool = False) -> Path:
        """A screenshot as PNG of exactly this many pixels."""
        self._run(f"--screenshot={out}", page=page, width=width, height=height, dark=dark)
        return out

    def _run(
        self, *words: str, page: Path | str, width: int, height: int, dark: bool
    ) -> subprocess.CompletedProcess[str]:
        command = [
            self.program,
            *FLAGS,
            f"--user-data-dir={self.profile}",
            f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            *words,
            page if isinstance(page, str) else page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr[-2000:]
        return done


def console(log: str) -> list[str]:
    """The messages of a page's console in the browser's log."""
    return [line for line in log.splitlines() if re.search(r"CONSOLE(?:\(\d+\)|:\d+)", line)]


def find(profile: Path) -> Browser:
    """The installed browser; skips the test aloud where there is none."""
    for name in NAMES:
        if program := shutil.which(name):
            return Browser(program, profile)
    pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (Debian: apt-get install chromium)")
