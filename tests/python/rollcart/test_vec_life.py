"""Beginning and end of an environment: imports, threads, processes, closing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from vec_common import equal, mk, random_actions


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**environment, **variables},
        timeout=60,
    )


def test_importing_brings_no_gymnasium_and_no_thread() -> None:
    done = run(
        "import rollcart, sys, os; assert 'gymnasium' not in sys.modules, 'gymnasium';"
        "print(len(os.listdir('/proc/self/task')) if os.path.isdir('/proc/self/task') else 1)"
    )
    assert done.stdout.strip() == "1", done.stderr


def test_rg22_the_ids_are_known_whichever_is_imported_first() -> None:
    for code in (
        "import rollcart, gymnasium; gymnasium.spec('CartRunner-Nes-v0')",
        "import gymnasium, rollcart; gymnasium.spec('CartRunner-Nes-v0')",
        "import gymnasium; gymnasium.make_vec('rollcart:CartRunner-Nes-v0', num_envs=2)",
        "import rollcart, gymnasium; gymnasium.make_vec('rollcart:CartRunner-Nes-v0', num_envs=2)",
        "import rollcart, importlib; importlib.reload(rollcart); import gymnasium;"
        "importlib.reload(rollcart); gymnasium.make('CartRunner-Nes-v0')",
    ):
        assert run(code).returncode == 0, run(code).stderr


@pytest.mark.parametrize(
    ("variables", "threads"),
    [({"RAYON_NUM_THREADS": "3"}, 3), ({"OMP_NUM_THREADS": "2"}, 2), ({"OMP_NUM_THREADS": "1,4"}, 1)],
    ids=str,
)
def test_u36_limits_of_the_environment_are_honoured(variables: dict[str, str], threads: int) -> None:
    done = run("import rollcart; print(rollcart.NesVectorEnv(num_envs=8).num_threads)", **variables)
    assert done.stdout.strip() == str(threads), done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_u36_the_default_is_the_processors_that_this_process_may_use() -> None:
    done = run(
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); import rollcart;"
        "print(rollcart.NesVectorEnv(num_envs=8).num_threads)"
    )
    assert done.stdout.strip() == "1", done.stderr


@pytest.fixture
def one_cpu_group() -> Iterator[Path]:
    """A control group of our own whose quota is one processor's time; skips where none may be made."""
    for parent, limit in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"), ("/sys/fs/cgroup", "cpu.max")):
        group = Path(parent, f"rollcart-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text("100000")  # of a period of 100,000 us
        except OSError:
            group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    pytest.skip("control groups may not be made here")


def test_threads_follow_the_quota_of_the_control_group(one_cpu_group: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor is all there is")
    done = run(
        f"import os; open({str(one_cpu_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "import rollcart; print(rollcart.NesVectorEnv(num_envs=8).num_threads)"
    )
    assert done.stdout.split() == ["1"], done.stderr


def test_rg20_closing_twice_is_harmless_and_later_calls_say_so() -> None:
    env = mk(2)
    env.reset(seed=0)
    env.close()
    env.close(anything=True)
    assert env.closed
    calls: list[Any] = [
        env.reset,
        lambda: env.step([0, 0]),
        env.ram,
        env.snapshot,
        lambda: env.render_lane(0),
    ]
    for call in calls:
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_rg20_threads_end_with_their_environment() -> None:
    done = run(
        "import os, time, rollcart, rollcart.vector_env\n"
        "before = len(os.listdir('/proc/self/task'))\n"  # numpy's own
        "for _ in range(20):\n"
        "    e = rollcart.NesVectorEnv(num_envs=4, num_threads=4); e.reset(); e.step([0] * 4); e.close()\n"
        "deadline = time.time() + 10\n"
        "while len(os.listdir('/proc/self/task')) > before and time.time() < deadline: time.sleep(0.05)\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n"
    )
    assert done.stdout.strip() == "0", done.stderr


def test_rg20_u34_the_process_ends_after_an_uncaught_exception() -> None:
    done = run(
        "import rollcart; e = rollcart.NesVectorEnv(num_envs=8, num_threads=4); e.reset(); e.step([0] * 8);"
        "raise RuntimeError('meant')"
    )
    assert done.returncode == 1 and "meant" in done.stderr


def test_u34_a_forked_child_makes_its_own_environment_and_is_told_about_its_parents() -> None:
    done = run(
        "import os, rollcart\n"
        "e = rollcart.NesVectorEnv(num_envs=4, num_threads=2); e.reset(seed=0); e.step([0] * 4)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        e.step([0] * 4)\n"
        "    except RuntimeError as error:\n"
        "        assert 'another process' in str(error)\n"
        "    else:\n"
        "        os._exit(3)\n"
        "    new = rollcart.NesVectorEnv(num_envs=4, num_threads=2); new.reset(seed=0); new.step([0] * 4)\n"
        "    new.close(); e.close(); os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); e.step([0] * 4)\n"
    )
    assert done.stdout.strip() == "0" and done.returncode == 0, done.stderr


def test_a_fork_while_code_is_translated_plays_on() -> None:
    done = run(
        "import os, rollcart\n"
        "def make(seed):\n"
        "    options = {'layout_seed': seed}\n"
        "    return rollcart.NesVectorEnv(num_envs=2, num_threads=1, obs='ram', engine_options=options)\n"
        "console = rollcart.Console(os.environ['ROM'])\n"
        "for seed in range(8):\n"
        "    env = make(seed); env.reset(seed=0)\n"
        "    for _ in range(2 + seed):\n"
        "        env.step([0] * 2); console.step(0, 2)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        console.step(0, 60)\n"
        "        new = make(seed); new.reset(seed=0); new.step([0] * 2); new._settle(); new.step([0] * 2)\n"
        "        os._exit(0 if new.profile()['jit_generations'] else 3)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, seed\n"
        "    env.step([0] * 2)\n",
        ROM=str(Path(__file__).parents[3] / "python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes"),
    )
    assert done.returncode == 0, done.stderr


def _child(seed: int) -> list[Any]:
    env = mk(2, noop_reset_max=9)
    env.reset(seed=seed)
    return [env.step(actions)[0] for actions in random_actions(env, 5)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_give_the_same_as_their_parent(method: str) -> None:
    here = _child(4)
    with multiprocessing.get_context(method).Pool(1) as pool:
        equal(pool.apply_async(_child, (4,)).get(timeout=60), here)


def test_rg19_u37_rendering_gives_owned_pictures_or_none() -> None:
    assert mk(2).render() is None
    env = mk(2, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first is not None and len(first) == 2
    assert all(p.shape == (224, 240, 3) and p.dtype == np.uint8 for p in first)
    then = [p.copy() for p in first]
    for actions in random_actions(env, 12):
        env.step(actions)
    equal(list(first), then)
    with pytest.raises(ValueError, match="lane 2"):
        env.render_lane(2)


def test_the_profile_counts_what_was_done() -> None:
    env = mk(2, limit=5)
    env.reset(seed=0)
    env.profile(lane_clocks=True)
    for _ in range(12):
        env.step([0, 0])
    profile = env.profile(lane_clocks=False)
    assert (profile["calls"], profile["steps"], profile["resets"], profile["episodes"]) == (12, 20, 6, 4)
    assert profile["frames"] == 20 * 4 + 6
    parts = [profile[f"lane_seconds_{part}"] for part in ("cpu", "ppu", "drawing", "observing")]
    assert all(part > 0 for part in parts)
    assert sum(parts) < profile["seconds_in_step"] * env.num_threads
    assert 4096 < profile["memory_per_lane"] <= 16 * 1024
    env.step([0, 0])
    again = env.profile()
    assert [again[f"lane_seconds_{part}"] for part in ("cpu", "ppu", "drawing", "observing")] == parts


def test_u27_no_warning_comes_from_a_hundred_steps_under_strict_numpy() -> None:
    done = run(
        "import warnings; warnings.simplefilter('error'); import numpy as np; np.seterr(all='raise');"
        "import rollcart; e = rollcart.NesVectorEnv(num_envs=2, obs='dict', noop_reset_max=5)\n"
        "e.reset(seed=0)\n"
        "for i in range(100): e.step([i % 36, 35 - i % 36])"
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


MEMORY = """
import rollcart
from rollcart.bench.soak import at_rest
def make():
    return rollcart.NesVectorEnv(num_envs=4, num_threads=2, max_episode_steps=3, resize=(12, 10),
                                 frame_skip=1, autoreset_mode="SameStep")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not show resident memory")
@pytest.mark.parametrize(
    "work",
    [
        "for _ in range(2000): env.reset()",
        "for _ in range(5000): env.step([9, 6, 0, 35])",
        "for _ in range(200): e = make(); e.reset(); e.step([0] * 4); e.close()",
        "for _ in range(300): env.restore(env.snapshot())",
    ],
)
def test_u20_memory_does_not_grow(work: str) -> None:
    measured = f"{work}\nbefore = at_rest(env)\n{work}\nprint(at_rest(env) - before)"
    done = run(f"{MEMORY}\nenv = make(); env.reset()\n{measured}")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 8 << 20


def test_u34_an_interrupt_breaks_off_a_long_step_and_asks_for_a_reset() -> None:
    # The alarm comes while the step runs: more work than any machine does in that time.
    done = run(
        "import signal, rollcart, gymnasium\n"
        "def stop(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, stop)\n"
        "e = rollcart.NesVectorEnv(num_envs=4096, frame_skip=60, resize=(2, 2), frame_stack=1, obs='ram')\n"
        "e.reset(seed=0)\n"
        "e.profile()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try: e.step([0] * 4096)\n"
        "except KeyboardInterrupt: pass\n"
        "print(0 < e.profile()['steps'] < 4096)\n"
        "try: e.step([0] * 4096)\n"
        "except gymnasium.error.ResetNeeded: print('reset')\n"
    )
    assert done.stdout.split() == ["True", "reset"], done.stderr


def test_u34_an_interrupt_ends_a_loop_of_steps() -> None:
    code = (
        "import rollcart; e = rollcart.NesVectorEnv(num_envs=64, num_threads=2); e.reset()\n"
        "print('on', flush=True)\n"
        "while True: e.step([0] * 64)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "on\n"
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode != 0 and "KeyboardInterrupt" in error


def test_rg20_with_closes_at_its_end_whatever_happened() -> None:
    with mk(2) as env:
        env.reset(seed=0)
    assert env.closed
    with pytest.raises(KeyError, match="meant"), mk(2) as env:
        raise KeyError("meant")
    assert env.closed


def test_a_call_into_a_running_one_is_told_so_and_changes_nothing() -> None:
    # From a signal handler, which runs inside the step, as another thread's call would.
    done = run(
        "import signal, rollcart\n"
        "def ask(*_):\n"
        "    for call in (env.ram, env.snapshot, env.reset, lambda: env.step([0] * 4096)):\n"
        "        try: call()\n"
        "        except RuntimeError as error: told.append('one call at a time' in str(error))\n"
        "told = []\n"
        "env = rollcart.NesVectorEnv(num_envs=4096, frame_skip=60, resize=(2, 2), frame_stack=1, obs='ram')\n"
        "env.reset(seed=0)\n"
        "signal.signal(signal.SIGALRM, ask)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "infos = env.step([0] * 4096)[4]\n"
        "print(told, int(infos['elapsed_steps'].sum()), env.step([0] * 4096)[4]['elapsed_steps'][0])\n"
    )
    assert done.stdout.strip() == f"{[True] * 4} 4096 2", done.stderr
