"""A ledger that the command line wrote, from a tiny repository, derived again by verify."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from cli_bench import make_bench

from cartlab.exchange import export_events, read_export
from cartlab.ledger import Ledger
from cartlab.verify import verify_root


def test_what_real_runs_record_verifies_also_after_a_kill_and_as_an_export(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    bench.project.commit("slower", work=150)
    assert bench.run("screen", "HEAD~1", "HEAD").code in (0, 10, 11)
    assert bench.run("accept", "HEAD~1", "HEAD", "--max-blocks", "10").code in (10, 11)
    assert bench.run("accept", "HEAD", "HEAD~1", "--max-blocks", "8", "--no-record").code in (0, 11)
    assert bench.run("calibrate", "HEAD", "--max-blocks", "3").code == 0
    running = bench.start("accept", "HEAD", "HEAD~1", "--max-blocks", "40")
    started = len(bench.events())
    deadline = time.monotonic() + 120
    while len(bench.events()) < started + 3 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert bench.run("accept", "HEAD", "HEAD~1", "--max-blocks", "10").code in (0, 11)
    report = verify_root(bench.root)
    assert report.findings == []
    assert report.decisions >= 5
    ended = [e["body"]["status"] for e in bench.events() if e["type"] == "attempt_finished"]
    assert "interrupted" in ended
    data = export_events(Ledger.open(bench.root).events(), "2026-01-01T00:00:00.000Z")
    assert str(tmp_path).encode() not in data
    assert read_export(data).report.decisions == report.decisions
    block = next((bench.root / "benchmarks" / "runs").glob("*/raw/block-00.json"))
    block.write_text(json.dumps({**json.loads(block.read_text()), "y": 0.5}))
    assert len(verify_root(bench.root).findings) == 1
