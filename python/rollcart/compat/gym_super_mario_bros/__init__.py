"""The interface of gym-super-mario-bros, for its tutorials, over your own ROM.

    from rollcart.compat import gym_super_mario_bros
    from rollcart.compat.gym_super_mario_bros import JoypadSpace
    from rollcart.compat.gym_super_mario_bros.actions import SIMPLE_MOVEMENT

    env = JoypadSpace(gym_super_mario_bros.make("SuperMarioBros-1-1-v0", rom_path="smb.nes"), SIMPLE_MOVEMENT)

Importing it registers the ids with Gymnasium. What differs from that package: docs/migrating.md.
"""

from __future__ import annotations

from rollcart.compat.gym_super_mario_bros import actions, ram
from rollcart.compat.gym_super_mario_bros.env import SuperMarioBrosEnv
from rollcart.compat.gym_super_mario_bros.ids import make, register
from rollcart.compat.gym_super_mario_bros.joypad import JoypadSpace, OldApi

__all__ = ["JoypadSpace", "OldApi", "SuperMarioBrosEnv", "actions", "make", "ram"]

register()
