"""`train`: PPO on one game, with a checkpoint, a curve and a video; the work is in `rollcart.ppo`."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollcart.cli import ppo_options
from rollcart.cli.answer import USAGE, Answer, CommandError
from rollcart.cli.talk import Talk
from rollcart.words import counted

if TYPE_CHECKING:
    from rollcart.ppo.trainer import Trainer

_SAVE_EVERY_S = 60.0


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("rollcart-train"), help="the run's folder (default rollcart-train)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after so many (default 10)")
    parser.add_argument(
        "--video",
        choices=("mp4", "gif", "none"),
        default="gif",
        help="what to show the policy in (default gif)",
    )
    ppo_options.declare(parser)


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    ppo_options.need_jax()
    from rollcart.ppo import show

    file = options.out / "checkpoint.npz"
    trainer = _trainer(options, file)
    settings = trainer.settings
    options.out.mkdir(parents=True, exist_ok=True)
    talk.say(
        f"{settings.game} from {settings.state}, {settings.obs} observations, "
        f"{counted(settings.lanes, 'lane')}, {settings.steps:,} steps, "
        f"at most {options.minutes:g} minutes; into {options.out}"
    )
    try:
        stopped = _train(trainer, file, options.minutes, talk)
    finally:
        # Also after Ctrl-C: nothing of the run is lost.
        if trainer.history:
            trainer.save(file)
        trainer.close()
    talk.say(f"stopped: {stopped}")

    def play(text: str) -> None:
        talk.progress(f"a random policy: {text}")

    chance = show.returns(
        settings,
        lambda env: show.random_policy(settings, int(env.single_action_space.n)),
        rom_path=options.rom_path,
        progress=play,
    )
    files = {
        "checkpoint": str(file),
        "curve": str(options.out / "curve.png"),
        "history": str(options.out / "history.json"),
    }
    show.curve(files["curve"], trainer.history, float(chance.mean()))
    last = trainer.history[-1]
    document: dict[str, Any] = {
        "settings": settings.as_dict(),
        "stopped": stopped,
        "last": last,
        "random": {"mean_return": float(chance.mean()), "std": float(chance.std()), "episodes": len(chance)},
        "files": files,
    }
    if options.video != "none":
        files["video"] = str(options.out / f"policy.{options.video}")
        shown = show.video(files["video"], settings, trainer.params, trainer.see, rom_path=options.rom_path)
        document["video"] = {"return": shown.best, "best_of": shown.all, "pictures": shown.pictures}
    Path(files["history"]).write_text(json.dumps(trainer.history) + "\n")
    talk.say(
        f"mean return of the last 100 episodes {last['mean_return']:.0f}, "
        f"of a random policy {chance.mean():.0f} "
        f"(standard deviation {chance.std():.0f}); {last['steps']:,.0f} steps in {last['seconds']:.0f} s"
    )
    talk.say("\n".join(f"  {name:10} {path}" for name, path in files.items()))
    return Answer(document)


def _trainer(options: argparse.Namespace, file: Path) -> Trainer:
    from rollcart.ppo.settings import Settings
    from rollcart.ppo.trainer import Trainer

    given = ppo_options.chosen(options)
    if options.resume:
        if given:
            named = ", ".join("--" + name.replace("_", "-") for name in given)
            raise CommandError(f"a resumed run keeps its settings: leave out {named}", USAGE)
        return Trainer.resumed(file, rom_path=options.rom_path)
    if file.exists():
        raise CommandError(f"{file} is there: --resume goes on with it, another --out begins anew", USAGE)
    return Trainer(replace(Settings(), **given), rom_path=options.rom_path)


def _train(trainer: Trainer, file: Path, minutes: float, talk: Talk) -> str:
    """Trains until the run or the time is over; which of them it was."""
    began = saved = time.monotonic()
    talk.progress("compiling the network")
    while not trainer.is_done:
        row = trainer.iterate()
        # Before an episode has ended there is no return to tell.
        mean = f"mean return {row['mean_return']:.0f}, " if row["episodes"] else ""
        talk.progress(
            f"{row['steps']:,.0f} of {trainer.settings.steps:,} steps, {row['episodes']:.0f} episodes, "
            f"{mean}{row['steps_per_second']:,.0f} steps/s"
        )
        now = time.monotonic()
        if now - saved > _SAVE_EVERY_S:
            trainer.save(file)
            saved = now
        if now - began > 60 * minutes:
            return f"after {minutes:g} minutes (--minutes); --resume goes on"
    return "all steps are done"
