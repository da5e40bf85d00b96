"""The subcommands, in the order in which a newcomer meets them. A row's first example is shown by --help."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """name: as typed. module: its file under rollcart.cli. examples: without the program's name."""

    name: str
    module: str
    summary: str
    examples: tuple[str, ...]


ROWS = (
    Row(
        "import",
        "import_",
        "find the ROMs of known games in folders and zips, and put them where they are looked for",
        (
            "import ~/roms",
            "import game.nes collection.zip --dry-run",
            "import ~/roms --into ~/retro-data --json",
        ),
    ),
    Row(
        "doctor",
        "doctor",
        "what this installation has, what it lacks, and how fast this machine is",
        ("doctor", "doctor --json"),
    ),
    Row(
        "play",
        "play",
        "play a game by hand: keyboard and pads, frames taken back, states, movies",
        ("play", "play --rom-path game.nes --scale 4", "play --movie run.rcm", "play --bind A=k --bind B=j"),
    ),
    Row(
        "record",
        "record",
        "turn a movie, or a lane of a batch that plays at random, into a video, a picture or a movie",
        (
            "record run.rcm --out run.mp4",
            "record run.rcm --check",
            "record inputs.txt --state Level2 --out shot.png --to 300",
            "record --lanes 16 --lane 3 --steps 500 --out lane3.gif",
        ),
    ),
    Row(
        "bench",
        "bench",
        "environment steps per second of a game, by lanes and threads",
        (
            "bench",
            "bench --rom-path game.nes --lanes 16,64 --threads 1,2",
            "bench --json --seconds 0.2 --repeats 1",
        ),
    ),
    Row(
        "rollout",
        "rollout",
        "measure how fast PPO plays and trains, and where the time goes",
        (
            "rollout",
            "rollout --lanes 8,16,32 --threads 1,2 --obs ram,image --json",
            "rollout --obs image --peer stable-retro --iterations 4",
        ),
    ),
    Row(
        "train",
        "train",
        "learn to play a game with PPO; writes a checkpoint, a learning curve and a video",
        (
            "train --out run1",
            "train --out run1 --resume --minutes 5",
            "train --out pixels --obs image --lanes 16 --steps 500000",
        ),
    ),
    Row(
        "trace",
        "trace",
        "what the CPU does, instruction by instruction, in the columns of nestest's log",
        (
            "trace --frames 1",
            "trace --first 300 --buttons RIGHT --out frame.log",
            "trace run.rcm --first 120",
        ),
    ),
)
BY_NAME = {row.name: row for row in ROWS}
