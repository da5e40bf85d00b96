"""NES games for reinforcement learning."""

from rollcart import errors
from rollcart._native import Console, CpuRegisters

__all__ = ["Console", "CpuRegisters", "errors"]
