#!/usr/bin/env python3
"""Find an input movie that wins a level of the bundled game, and write it to movies/levelN.txt.

Best-first search over held buttons: from the state that got furthest, each choice of buttons is held for
a few frames; a cart that is lost is dropped, and a situation that was seen before is not tried again.
Looks at RAM through the names of data.json. The format of a movie is in movies/README.md. Needs the
built native module.

    .venv/bin/python games/cart_runner/tools/find_movie.py 1 2 3 4
"""

import argparse
import heapq
import json
from itertools import count, groupby
from pathlib import Path

import rollcart

GAME = Path(__file__).resolve().parents[1]
DATA = GAME.parents[1] / "python/rollcart/data/stable/CartRunner-Nes-v0"
ADDRESS = {name: row["address"] for name, row in json.loads((DATA / "data.json").read_text())["info"].items()}
BITS = {"A": 1, "B": 2, "SELECT": 4, "START": 8, "UP": 16, "DOWN": 32, "LEFT": 64, "RIGHT": 128}
CHOICES = ("RIGHT+B", "RIGHT+B+A", "RIGHT", "RIGHT+A", "A", "-", "LEFT")
HOLD = 8  # frames
MAX_STATES = 400_000
MODE_PLAY, MODE_LOST = 3, 4


def mask(buttons: str) -> int:
    return sum(BITS[name] for name in buttons.split("+") if name != "-")


class Sight:
    """What the search knows of one moment."""

    def __init__(self, console: rollcart.Console) -> None:
        ram = console.ram
        word = lambda name: int(ram[ADDRESS[name]]) | int(ram[ADDRESS[name] + 1]) << 8  # noqa: E731
        self.x, self.y = word("xpos"), word("ypos")
        self.cleared, self.dying = bool(ram[ADDRESS["cleared"]]), bool(ram[ADDRESS["dying"]])
        self.time = int(console.frame_count)
        self.speed = word("xspeed") >> 6, word("yspeed") >> 7, int(ram[ADDRESS["on_ground"]])

    def situation(self) -> tuple:
        """Equal for moments that need not be told apart; time is coarse, since lifts and enemies move."""
        return self.x >> 3, self.y >> 3, self.speed, self.time >> 5


def search(level: int) -> list[tuple[int, str]]:
    """Inputs, one choice each HOLD frames, from the level's start state to its goal."""
    console = rollcart.Console(DATA / "rom.nes")
    console.load((DATA / f"Level{level}.state").read_bytes())
    order = count()
    queue = [(0, next(order), console.save(), ())]
    seen: set[tuple] = set()
    best = 0
    while queue and len(seen) < MAX_STATES:
        _, _, state, path = heapq.heappop(queue)
        for choice in CHOICES:
            console.load(state)
            console.step(mask(choice), HOLD)
            sight = Sight(console)
            inputs = (path, choice)
            if sight.cleared:
                return unroll(inputs)
            key = sight.situation()
            if sight.dying or key in seen:
                continue
            seen.add(key)
            if sight.x > best:
                best = sight.x
                print(f"\rlevel {level}: x {best}, {len(seen)} situations", end="", flush=True)
            heapq.heappush(queue, (-sight.x, next(order), console.save(), inputs))
    raise SystemExit(f"\nlevel {level}: no way found beyond x {best} in {len(seen)} situations")


def unroll(inputs: tuple) -> list[tuple[int, str]]:
    """The linked path as runs of (frames, buttons)."""
    steps = []
    while inputs:
        inputs, choice = inputs
        steps.append(choice)
    return [(HOLD * len(list(run)), choice) for choice, run in groupby(reversed(steps))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Find winning movies.")
    parser.add_argument("levels", type=int, nargs="+", choices=(1, 2, 3, 4))
    for level in parser.parse_args().levels:
        runs = search(level)
        lines = [f"# Level {level} from Level{level}.state to its goal.", *(f"{n} {b}" for n, b in runs)]
        (GAME / "movies" / f"level{level}.txt").write_text("\n".join(lines) + "\n")
        print(f"\nlevel {level}: {sum(n for n, _ in runs)} frames in {len(runs)} runs")


if __name__ == "__main__":
    main()
