"""The fake worker of the tests: an adapter over a C library that the fake project builds in milliseconds.

fake_project.py makes the repository and its variants. `lanes` and `work` are fields of the workload; the
library multiplies `work` by a constant of its own, so that a commit can be made faster or slower by a known
share.
"""

import array
import ctypes
import importlib
import random
import sys
from pathlib import Path


class BadLanes(Exception):
    """A workload that no build can run."""


BAD_INPUT = (BadLanes,)


class Session:
    """A few lanes of a small generator, stepped together."""

    def __init__(self, native, params, seed):
        if "held_out" in params:
            seed = f"{params['held_out']}/{seed}"
        self.native = native
        self.lanes = params["lanes"]
        if self.lanes < 1:
            raise BadLanes(f"lanes must be at least 1; found {self.lanes}")
        self.work = params["work"]
        self.rng = random.Random(seed)
        self.library = ctypes.CDLL(native)
        self.library.step.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 4]
        self.states = array.array("Q", [self.rng.getrandbits(63) | 1 for _ in range(self.lanes)])
        self.actions = []
        self.kept = []

    def prepare(self, steps):
        self.actions = [bytes(self.rng.randrange(8) for _ in range(self.lanes)) for _ in range(steps)]

    def forget(self):
        self.kept = []

    def run(self):
        for actions in self.actions:
            self.kept.append(self.step(actions))

    def step(self, actions):
        observation = ctypes.create_string_buffer(self.lanes * 4)
        rewards = (ctypes.c_double * self.lanes)()
        flags = ctypes.create_string_buffer(self.lanes)
        address, _ = self.states.buffer_info()
        self.library.step(address, self.lanes, self.work, actions, observation, rewards, flags)
        return observation, rewards, flags

    def results(self):
        return [[list(rewards), flags.raw] for _, rewards, flags in self.kept]

    def observation(self, step):
        return self.kept[step][0].raw

    def verify(self, steps):
        yield "surface", [self.lanes, "step"]
        self.prepare(steps)
        saved = array.array("Q", self.states)
        for number, actions in enumerate(self.actions):
            observation, rewards, flags = self.step(actions)
            yield f"step {number} observations", observation.raw
            yield f"step {number} rewards", list(rewards)
            yield f"step {number} flags", flags.raw
        self.states[:] = saved
        yield "restored", self.step(self.actions[0])[0].raw

    def close(self):
        self.library = None


def open(workload, seed, layout_seed):
    """Load the library from the build directory, first on sys.path, and its Python part if it has one."""
    if (Path(sys.path[0]) / "extension.py").exists():
        importlib.import_module("extension")
    return Session(str(Path(sys.path[0]) / "libengine.so"), workload["params"], seed)
