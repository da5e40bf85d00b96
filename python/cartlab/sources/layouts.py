"""Relinked variants of a build: the same code at other addresses, without compiling again.

Two builds of one source differ in speed by layout alone, and no statistics on one pair of builds can see
that. Where autoresearch.toml has a [layout] command, each block measures a drawn variant of each side. The
command gets

    CARTLAB_BUILD_DIR    a copy of the finished build, to be changed in place CARTLAB_ARTIFACT     the
    native file in it CARTLAB_LINK_DIR     what the build command left in its own CARTLAB_LINK_DIR (objects,
    the saved link line) CARTLAB_LAYOUT_SEED  the number of the variant

and must leave another artifact. Variants are few and cached, so a long run does not relink for every block.
A build that cannot be relinked is measured as it is, and its blocks say why.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Protocol

from cartlab.errors import CartlabError
from cartlab.model import Build, digest_of
from cartlab.processes import run_shell
from cartlab.sources.stamps import finish, load, manifest
from cartlab.sources.tools import Recipe, environment

VARIANTS = 8
TIMEOUT_S = 120.0
REFUSED = "layouts-refused.json"


class Relinkable(Protocol):
    """What this needs of config.Config."""

    @property
    def layout_command(self) -> str | None: ...
    @property
    def build(self) -> Recipe: ...


class CannotRelink(CartlabError):
    """The layout command failed or changed nothing; the message says why."""


def variant(config: Relinkable, build: Build, seed: int) -> Build:
    """The variant `seed` (1, 2, ...) of a build; CannotRelink where the command cannot make one."""
    if config.layout_command is None:
        raise CannotRelink("no [layout] command")
    home = Path(build.path).parent
    key = digest_of([config.layout_command, seed])[:8]
    folder = home / "layouts" / f"{seed}-{key}"
    build_id = f"{build.build_id}-{seed}"
    found = load(build.ref, build_id, folder)
    if found:
        return found
    refusal = home / REFUSED
    known = _refusal(refusal, config.layout_command)
    if known:
        raise CannotRelink(known)
    shutil.rmtree(folder, ignore_errors=True)
    out = folder / "out"
    shutil.copytree(build.path, out, symlinks=True)
    outcome = run_shell(
        config.layout_command,
        cwd=folder,
        env={
            **environment(config.build, out, folder / "target", home / "link"),
            "CARTLAB_ARTIFACT": str(out / build.artifact),
            "CARTLAB_LAYOUT_SEED": str(seed),
        },
        timeout_s=TIMEOUT_S,
        log=folder / "layout.log",
    )
    files = manifest(out)
    if outcome.returncode != 0:
        reason = f"the layout command ended with exit code {outcome.returncode}"
    elif files.get(build.artifact) in (None, build.artifact_sha256):
        reason = "the layout command left the artifact as it was"
    else:
        shutil.rmtree(folder / "target", ignore_errors=True)
        return finish(build.ref, build_id, folder, build.artifact, outcome.seconds, fresh=False)
    (folder / "layout.log").replace(home / "layout.log")
    shutil.rmtree(folder, ignore_errors=True)
    refusal.write_text(json.dumps({"command": config.layout_command, "reason": reason}))
    raise CannotRelink(reason)


def _refusal(path: Path, command: str) -> str | None:
    try:
        body = json.loads(path.read_text())
        return str(body["reason"]) if body["command"] == command else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
