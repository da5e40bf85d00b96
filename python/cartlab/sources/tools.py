"""What compiles here, and what a build command sees of its caller's environment."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cartlab.model import digest_of
from cartlab.sources import toolfiles

_TOOLS = (("rustc", "-vV"), ("cargo", "-V"), ("cc", "--version"), ("ld", "--version"))
# Variables of the caller that change what a compiler makes: part of the key, handed to the build.
_FLAGS = (
    "RUSTFLAGS",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CC",
    "CXX",
    "AR",
    "RUSTUP_TOOLCHAIN",
    "MACOSX_DEPLOYMENT_TARGET",
)
_ANSWERS_WITHIN_S = 60.0  # a compiler that says nothing so long is as good as none
_FLAG_PREFIXES = ("CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_ENCODED_", "CARGO_TARGET_", "CFLAGS_")
_NOT_FLAGS = ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_JOBS")
# Handed on because a build needs them to run at all.
_PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "CARGO_BUILD_JOBS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "SYSTEMROOT",
)  # fmt: skip
_PASSED_PREFIXES = ("CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_")


class Recipe(Protocol):
    """What a build needs of config.BuildSpec."""

    @property
    def command(self) -> str: ...
    @property
    def artifact(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def timeout_s(self) -> float: ...


@functools.lru_cache(maxsize=4)
def toolchain(folder: Path) -> Mapping[str, str]:
    """First lines of what the compilers of `folder` say about themselves, and this Python; absent ones are
    left out.
    """
    found = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    with contextlib.ExitStack() as running:
        # All at once: `next` may ask too, and is to answer at once.
        asked = {}
        for name, flag in _TOOLS:
            with contextlib.suppress(OSError):
                process = subprocess.Popen(
                    [name, flag],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                asked[name] = running.enter_context(process)
        for name, process in asked.items():
            try:
                out, _ = process.communicate(timeout=_ANSWERS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                continue
            if process.returncode == 0:
                text = out.decode(errors="replace").strip()
                found[name] = text if name == "rustc" else text.partition("\n")[0]
    return found


def toolchain_id(folder: Path, memory: Path | None = None) -> str:
    """Digest of `toolchain`: calibrations and builds of another compiler do not count.

    memory: a file that may hold the answer (toolfiles): for who only looks.
    """
    if memory is None:
        return digest_of(dict(toolchain(folder)))
    seen = toolfiles.fingerprint(folder, [name for name, _ in _TOOLS])
    return toolfiles.remembered(memory, seen, lambda: toolchain_id(folder))


def flags() -> dict[str, str]:
    """Variables of the caller that change what a compiler makes."""
    return {
        key: value
        for key, value in os.environ.items()
        if (key in _FLAGS or key.startswith(_FLAG_PREFIXES)) and key not in _NOT_FLAGS
    }


def environment(recipe: Recipe, out: Path, target: Path, link: Path) -> dict[str, str]:
    """What a build or layout command sees: what it needs of the caller's variables, and where its folders
    are.
    """
    passed = {
        key: value
        for key, value in os.environ.items()
        if key in _PASSED_ON or key.startswith(_PASSED_PREFIXES)
    }
    own = {
        "CARTLAB_BUILD_DIR": str(out),
        "CARTLAB_LINK_DIR": str(link),
        "CARTLAB_PYTHON": sys.executable,
        "CARGO_TARGET_DIR": str(target),
        "PYO3_PYTHON": sys.executable,
        "SOURCE_DATE_EPOCH": "315532800",
        "GIT_CEILING_DIRECTORIES": str(out.parent.parent),
        "PYTHONNOUSERSITE": "1",
    }
    return {**passed, **flags(), **own, **recipe.env}
