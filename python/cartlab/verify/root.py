"""A whole state root: the events, the raw block files beside them, and the rows that people read.

Source: SPECS.md section 6. A missing raw file is none of the ledger's faults (gc may have removed
it); one that differs is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cartlab.verify.chain import checked_lines
from cartlab.verify.replay import Finding, Replay, Report


def verify_root(root: Path) -> Report:
    """Replay events.jsonl, then hold raw/block-NN.json and results.tsv against it. Reads only."""
    path = root / "events.jsonl"
    data = path.read_bytes() if path.exists() else b""
    replay = Replay()
    for line, event, wrong in checked_lines(data):
        if wrong:
            replay.report.findings.append(Finding(line, None, wrong))
        if event is not None:
            replay.feed(line, event)
    findings = replay.report.findings
    for name, run in replay.runs.items():
        folder = root / "benchmarks" / "runs" / name / "raw"
        for _, body in run.blocks:
            raw = folder / f"block-{body['index']:02d}.json"
            if raw.exists() and not _same(raw, body):
                findings.append(Finding(0, name, f"raw/{raw.name} is not the block that the ledger has"))
    for name, lines in replay.loops.simpler.items():
        patch = root / "benchmarks" / "runs" / name / "patch.diff"
        if patch.exists() and _net(patch.read_text(encoding="utf-8", errors="replace")) != lines:
            findings.append(Finding(0, name, "its patch does not have the code lines that made it a keep"))
    findings += [Finding(0, name, what) for name, what in _rows(root, replay)]
    return replay.report


def _net(patch: str) -> int:
    """Code lines that a patch adds less those that it takes away: no comments, blank lines, prose or data."""
    prose = (".md", ".rst", ".txt", ".json", ".lock", ".csv", ".svg")
    comments = ("#", "//", "--", ";;", "/*", "*/", "* ", '"""', "'''", "<!--")
    total = 0
    for part in ("\n" + patch).split("\ndiff --git ")[1:]:
        head, _, hunks = part.partition("\n@@")
        if head.split("\n")[0].rstrip('"').endswith(prose):
            continue
        for line in hunks.split("\n")[1:]:
            text = line[1:].strip()
            if line[:1] in ("+", "-") and text not in ("", "*") and not text.startswith(comments):
                total += 1 if line[0] == "+" else -1
    return total


def _same(raw: Path, body: dict[str, Any] | Any) -> bool:
    try:
        found = json.loads(raw.read_bytes())
    except ValueError:
        return False
    return isinstance(found, dict) and all(found.get(k) == v for k, v in body.items() if k != "unrecorded")


def _rows(root: Path, replay: Replay) -> list[tuple[str, str]]:
    """Rows of results.tsv that do not say what the attempt ended with. A missing or older file is only a
    stale view.
    """
    table = root / "results.tsv"
    if not table.exists():
        return []
    head, *lines = table.read_text(encoding="utf-8", errors="replace").rstrip("\n").split("\n")
    names = head.split("\t")
    out = []
    for line in lines:
        row = dict(zip(names, line.split("\t"), strict=False))
        run = replay.runs.get(row.get("attempt_id", ""))
        if run is None:
            if not row.get("description", "").startswith("imported"):
                out.append(
                    (row.get("attempt_id", ""), "results.tsv has a row of an attempt that the ledger lacks")
                )
            continue
        if not run.plan["recorded"]:
            out.append((run.name, "results.tsv has a row of an unrecorded attempt"))
        if run.finished is not None and row.get("status") != run.finished["status"]:
            out.append(
                (run.name, f"results.tsv says {row.get('status')}, the ledger {run.finished['status']}")
            )
    return out
