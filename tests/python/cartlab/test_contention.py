"""The contention rule: measured in the window, blind to the outcome, silent where nothing is known."""

from __future__ import annotations

import dataclasses
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path

import fake_project
import pytest

from cartlab import measure
from cartlab.measure import contention
from cartlab.measure.contention import Contention, Reading, over, reason_to_drop

QUIET = Contention(0.01, 0.0, 0.2, 0.0, 1.9, 5.0)


def reading(**changes: object) -> Reading:
    plain = Reading(wall_ns=0, steal_s=0.0, psi_some_us=0, throttled_us=0, run_ns=0, waited_ns=0, switches=0)
    return dataclasses.replace(plain, **changes)


def test_a_quiet_block_is_kept() -> None:
    assert reason_to_drop(QUIET) is None


@pytest.mark.parametrize("name", [name for name, _ in contention.LIMITS])
def test_each_limit_drops_a_block_just_above_it_and_keeps_one_at_it(name: str) -> None:
    limit = dict(contention.LIMITS)[name]
    assert reason_to_drop(dataclasses.replace(QUIET, **{name: limit})) is None
    found = reason_to_drop(dataclasses.replace(QUIET, **{name: limit + 0.01}))
    assert found is not None
    assert found.startswith(f"busy: {name} ")


def test_what_a_system_does_not_tell_drops_nothing() -> None:
    before = reading(steal_s=None, psi_some_us=None, throttled_us=None)
    nothing = over([(before, dataclasses.replace(before, wall_ns=10**9))], 0, 0)
    assert nothing.to_json() == {
        "waited_share": None,
        "steal_share": None,
        "psi_some_share": None,
        "throttled_share": None,
        "cpu_per_wall": None,
        "switches_per_s": 0.0,
    }
    assert reason_to_drop(nothing) is None


def test_shares_are_of_the_window() -> None:
    before = reading(wall_ns=10**9, steal_s=1.0, psi_some_us=500, switches=7)
    after = reading(
        wall_ns=3 * 10**9,
        steal_s=1.0 + 0.2 * (os.cpu_count() or 1),
        psi_some_us=1_000_500,
        throttled_us=100_000,
        run_ns=3 * 10**8,
        waited_ns=10**8,
        switches=27,
    )
    found = over([(before, after)], slices_ns=10**9, slices_cpu_ns=15 * 10**8)
    assert over([(before, after), (after, after)], 10**9, 15 * 10**8) == found
    assert found == Contention(
        waited_share=pytest.approx(0.25),
        steal_share=pytest.approx(0.1),
        psi_some_share=pytest.approx(0.5),
        throttled_share=pytest.approx(0.05),
        cpu_per_wall=pytest.approx(1.5),
        switches_per_s=pytest.approx(10.0),
    )


def test_the_rule_is_handed_sums_over_both_sides_and_no_ratio() -> None:
    assert list(inspect.signature(reason_to_drop).parameters) == ["found"]
    names = {field.name for field in dataclasses.fields(Contention)}
    assert not {name for name in names if "base" in name or "cand" in name or "ratio" in name or name == "y"}


SYSTEM = {
    "/proc/stat": "cpu  10 0 20 300 0 0 0 250 0 0\ncpu0 1 0 2 30 0 0 0 99 0 0",
    "/proc/pressure/cpu": "some avg10=1.00 avg60=2.00 avg300=3.00 total=123456\nfull avg10=0.00 total=7",
    "cpu.stat": "usage_usec 5\nthrottled_usec 4321",
}


def told(monkeypatch: pytest.MonkeyPatch, **changed: str) -> Reading:
    texts = {**SYSTEM, **{name.replace("_", "/"): text for name, text in changed.items()}}
    monkeypatch.setattr(contention.host, "cgroup_folders", lambda: [Path("/cgroup/inner"), Path("/cgroup")])
    monkeypatch.setattr(
        contention.host,
        "read",
        lambda path: texts.get(str(path), texts.get(path.name, "") if path.parent.name == "cgroup" else ""),
    )
    return contention.read([])


def test_each_counter_is_read_from_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch)
    assert found.steal_s == 250 / os.sysconf("SC_CLK_TCK")
    assert (found.psi_some_us, found.throttled_us) == (123456, 4321)
    older = told(monkeypatch, **{"cpu.stat": "nr_throttled 3\nthrottled_time 4321000"})
    assert older.throttled_us == 4321


@pytest.mark.parametrize(
    "changed",
    [
        {"_proc_stat": "", "_proc_pressure_cpu": "", "cpu.stat": ""},
        {"_proc_stat": "cpu  1 2 3 4 5 6 7", "_proc_pressure_cpu": "full avg10=0.00 total=7"},
        {"_proc_stat": "intr 1 2 3 4 5 6 7 8 9", "_proc_pressure_cpu": "some avg10=1.00"},
    ],
)
def test_a_counter_that_the_system_does_not_tell_is_none(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    found = told(monkeypatch, **changed)
    assert found.steal_s is None and found.psi_some_us is None
    assert found.throttled_us == (None if "cpu.stat" in changed else 4321)


def test_a_real_busy_neighbour_shows_in_the_readings() -> None:
    spin = "import time\nend = time.monotonic() + 0.4\nwhile time.monotonic() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        pids = [process.pid for process in processes]
        time.sleep(0.15)
        before = contention.read(pids)
        time.sleep(0.15)
        after = contention.read(pids)
    finally:
        for process in processes:
            process.wait()
    if not Path("/proc/thread-self/schedstat").exists():
        assert after.waited_ns == 0
        return
    share = over([(before, after)], 1, 1).waited_share
    assert share is not None
    assert share > 0.2


def test_a_dropped_block_is_recorded_with_its_slices_and_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = fake_project.make(tmp_path / "repo")
    build = project.build(tmp_path / "root")
    monkeypatch.setattr(contention, "LIMITS", (("cpu_per_wall", 0.0),))
    block = measure.run_block(project.plan(), 0, 0, build, build, repo=project.path)
    assert block.dropped is not None
    assert block.dropped.startswith("busy: cpu_per_wall")
    assert len(block.base_ns) == len(block.cand_ns) == 12
    assert set(block.witness["contention"]) >= {"waited_share", "steal_share", "psi_some_share"}
