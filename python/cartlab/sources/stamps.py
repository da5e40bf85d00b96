"""Finished builds on disk: FOLDER/{out/, stamp.json}. The stamp is written last and has the digest of every
file.

It is compared whenever a build is used: one that a build script or a worker changed on disk is made anew
before a run, and ends a run as tampering.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from cartlab import disk
from cartlab.errors import Tampered
from cartlab.model import Build, Ref

STAMP = "stamp.json"


def finish(ref: Ref, build_id: str, folder: Path, artifact: str, seconds: float, fresh: bool) -> Build:
    """Compile the Python in FOLDER/out, stamp it, and give the build."""
    compile_python(folder / "out")
    files = manifest(folder / "out")
    seconds = round(seconds, 3)
    stamp = {
        "v": 1,
        "tree": ref.tree,
        "artifact": artifact,
        "seconds": seconds,
        "fresh": fresh,
        "files": files,
    }
    # Last and at once: a build without its stamp does not exist.
    text = json.dumps(stamp, sort_keys=True, indent=1)
    disk.replace_bytes(disk.Disk(), folder / STAMP, text.encode())
    return Build(ref, build_id, str(folder / "out"), artifact, files[artifact], seconds, False)


def load(ref: Ref, build_id: str, folder: Path) -> Build | None:
    """The finished build in `folder`, or None where there is none or a file of it is not what the stamp
    says.
    """
    try:
        stamp = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(stamp, dict) or stamp.get("files") != manifest(folder / "out"):
        return None
    return Build(
        ref=ref,
        build_id=build_id,
        path=str(folder / "out"),
        artifact=stamp["artifact"],
        artifact_sha256=stamp["files"][stamp["artifact"]],
        seconds=stamp["seconds"],
        cached=True,
    )


def check(build: Build) -> None:
    """Tampered where the build on disk is no longer the one that was stamped; called before each block."""
    folder = Path(build.path)
    try:
        stamped = json.loads((folder.parent / STAMP).read_text())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        stamped = None
    if stamped != manifest(folder):
        raise Tampered(
            f"the build of {build.ref.name} must be as it was made; files of it changed on disk",
            "look for a build script or a worker that writes outside its folder",
            details={"build_id": build.build_id},
        )


def log_of(build: Build) -> Path:
    """Where the log of a build is kept."""
    return Path(build.path).parent / "build.log"


def manifest(folder: Path) -> dict[str, str]:
    """Relative path -> sha256 of every file (a link by its target), sorted."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link:{path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def compile_python(out: Path) -> None:
    """Byte code for the workers, which write none; checked by content, so that its time does not matter."""
    subprocess.run(
        [sys.executable, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
