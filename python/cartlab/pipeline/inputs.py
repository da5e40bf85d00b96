"""Which workload is measured, on which cartridge: flag, then GAME under RETRO_DATA_PATH, else the bundled
game.

A workload plays a cartridge when its params name a `game`; `games_dir` is the repository's folder of
bundled games. The cartridge is read from the controller's side and handed to both workers by path, and its
digest enters the workload's hash: a candidate cannot change what is played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, UsageError
from cartlab.host import usable_cpus
from cartlab.model import Workload
from cartlab.pipeline.request import Runner
from cartlab.root import read_dotenv

TREE = "RETRO_DATA_PATH"
# Stable Retro keeps games beside each other in `data/stable` and its siblings; a user's tree may leave that
# level out.
LEVELS = ("", "stable", "experimental", "contrib")


def workload_of(config: Any, repo: Path, runner: Runner, environ: Mapping[str, str]) -> tuple[Workload, str]:
    """The workload with its cartridge, and the first line that a command prints about it."""
    chosen: Workload = config.workload(runner.workload)
    if chosen.params.get("num_threads") == 0:
        # Pinned, so that it enters the hash: by default as many as this process may use.
        chosen = config.workload(runner.workload, {"num_threads": usable_cpus()})
    if "game" not in chosen.params:
        given = [flag for flag in ("rom_path", "game", "state_dir") if getattr(runner, flag)]
        if given:
            flag = "--" + given[0].replace("_", "-")
            raise UsageError(
                f"{flag} names a cartridge; workload {chosen.name} plays none", hint="leave it out"
            )
        return chosen, f"workload: {chosen.name} {chosen.hash[:12]} (plays no cartridge)"
    game = runner.game or str(chosen.params["game"])
    rom, source = _cartridge(game, chosen.params, repo, runner, environ)
    params: dict[str, Any] = {"game": game, "rom_path": str(rom), "rom_sha256": _digest(rom)}
    states = Path(runner.state_dir).expanduser().resolve() if runner.state_dir else rom.parent
    if not states.is_dir():
        raise BadInput(
            f"expected a folder of states, found none at {states}", hint="give --state-dir a folder"
        )
    if runner.state_dir or source != "bundled":
        params |= {"state_dir": str(states), "state_sha256": _states_digest(states)}
    plain = config.workload(runner.workload, {**chosen.params, **params})
    return (
        plain,
        f"rom: {source} {game}, sha256 {params['rom_sha256']}, workload {plain.name} {plain.hash[:12]}",
    )


def _cartridge(
    game: str, params: Mapping[str, Any], repo: Path, runner: Runner, environ: Mapping[str, str]
) -> tuple[Path, str]:
    if runner.rom_path:
        rom = Path(runner.rom_path).expanduser().resolve()
        if not rom.is_file():
            raise BadInput(
                f"expected a ROM, found no file at {rom}", hint="give --rom-path the path of a .nes file"
            )
        return _looked_at(rom), "--rom-path"
    tree = environ.get(TREE) or read_dotenv(repo / ".env").get(TREE)
    if tree:
        base = (repo / Path(tree).expanduser()).resolve()
        for level in LEVELS:
            rom = base / level / game / "rom.nes"
            if rom.is_file():
                return _looked_at(rom), TREE
    bundled = (repo / str(params.get("games_dir", "")) / game / "rom.nes").resolve()
    if bundled.is_file():
        return _looked_at(bundled), "bundled"
    where = f"neither in {TREE} ({tree}) nor bundled" if tree else f"not bundled, and {TREE} is not set"
    raise BadInput(
        f"expected the game {game!r}, found it {where}", hint=f"set {TREE}, or give --rom-path FILE"
    )


def _looked_at(rom: Path) -> Path:
    # The engine reads headers; here only what is no iNES file at all is told apart, before minutes of
    # building.
    with rom.open("rb") as file:
        head = file.read(16)
    if head[:4] != b"NES\x1a" or len(head) < 16:
        raise BadInput(
            f"expected an iNES file, found {head[:4]!r} at the start of {rom.name}", hint="give a .nes file"
        )
    banks_16k, banks_8k, trainer = head[4], head[5], 512 * (head[6] >> 2 & 1)
    need = 16 + trainer + 16384 * banks_16k + 8192 * banks_8k
    # NES 2.0 may hold larger numbers in other bytes; the engine says so where it matters.
    if head[7] & 0x0C != 0x08 and rom.stat().st_size < need:
        raise BadInput(
            f"{rom.name} is truncated: its header promises {need} bytes, found {rom.stat().st_size}",
            hint="give a whole file",
        )
    return rom


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _states_digest(folder: Path) -> str:
    """One digest over the names and bytes of the folder's states."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.state")):
        digest.update(f"{path.name}:{_digest(path)};".encode())
    return digest.hexdigest()
