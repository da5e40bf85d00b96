"""The machine's facts: limits that containers set are seen, and nothing names the machine."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from cartlab import host


def test_usable_cpus_follow_the_affinity_of_this_process() -> None:
    if not hasattr(os, "sched_setaffinity"):
        assert host.usable_cpus() == os.cpu_count()
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert host.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("cpu_max", "limit"), [("150000 100000", 1.5), ("max 100000", None), ("", None), ("50000 100000", 0.5)]
)
def test_the_innermost_and_the_outer_control_groups_limit_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_max: str, limit: float | None
) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/outer/inner\n")
    inner = tmp_path / "cgroup" / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "cpu.max").write_text("max 100000\n")
    (inner.parent / "cpu.max").write_text(cpu_max + "\n")
    monkeypatch.setattr(host, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(host, "_CGROUP", tmp_path / "cgroup")
    assert host.cgroup_cpus() == limit
    assert host.usable_cpus() >= 1
    if limit is not None:
        assert host.usable_cpus() == 1


def test_facts_name_neither_the_host_nor_its_user() -> None:
    text = json.dumps(host.facts())
    for secret in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert secret not in text
    assert len(host.host_class()) == 12
