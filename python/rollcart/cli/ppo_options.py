"""The arguments that `train` and `rollout` share: one for each of PPO's settings that a user may change."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from rollcart.cli.answer import needs
from rollcart.ppo.settings import OBSERVATIONS, Settings

_HELP = {
    "game": "a game with data files",
    "state": "where episodes begin: one of the game's states, or a path",
    "obs": "what the network sees: the console's RAM, or four grey 84 x 84 pictures",
    "actions": "the action set (see NesVectorEnv)",
    "lanes": "consoles played at once",
    "threads": "threads that play them (default: the CPUs that this process may use)",
    "frame_skip": "frames a step",
    "max_episode_steps": "steps after which an episode is cut",
    "noop_reset_max": "at most so many random frames without buttons before an episode",
    "seed": "seed of lanes, actions and weights",
    "steps": "environment steps of the whole run, over all lanes",
    "horizon": "steps of a lane between two updates",
    "ram_bytes": "bytes of RAM that the network sees, at most",
    "hidden": "units of each dense layer",
    "learning_rate": "the first learning rate; it falls to 0",
    "entropy": "weight of the entropy bonus",
    "epochs": "passes over each rollout",
    "minibatches": "minibatches of each pass",
    "reward_scale": "what rewards are multiplied by before learning",
}


def declare(parser: argparse.ArgumentParser, without: tuple[str, ...] = ()) -> None:
    """Adds --name for each setting above; unset ones are None."""
    kinds = {field.name: type(field.default) for field in dataclasses.fields(Settings)}
    defaults = Settings()
    for name, text in _HELP.items():
        if name in without:
            continue
        default = getattr(defaults, name)
        shown = text if default is None else f"{text} (default {default})"
        kind = int if default is None else kinds[name]
        choices = OBSERVATIONS if name == "obs" else None
        parser.add_argument(
            "--" + name.replace("_", "-"),
            type=kind,
            choices=choices,
            metavar=None if choices else "N",
            help=shown,
        )
    parser.add_argument("--rom-path", metavar="FILE", help="the ROM, where it is not in the game's folder")


def chosen(options: argparse.Namespace, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings that were given, but those that the command reads itself."""
    names = [name for name in _HELP if name not in without and getattr(options, name, None) is not None]
    return {name: getattr(options, name) for name in names}


def need_jax() -> None:
    """CommandError where the extra `ppo` is not installed."""
    needs("jax", "ppo")
    needs("optax", "ppo")
