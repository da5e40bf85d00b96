"""`gc`: frees what can be made again, beside controllers that run.

While it chooses it holds the ledger's lock, so that no attempt starts meanwhile, and knows the ones that run
by their own locks; what they may use stays. What was chosen is renamed away under the locks, deleted after.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from cartlab import garbage
from cartlab.garbage import Item, Wish
from cartlab.ledger import Attempt, Ledger
from cartlab.outcome import Outcome, Report
from cartlab.pipeline.run import open_ledger
from cartlab.pipeline.voice import Voice
from cartlab.words import counted

NEXT = "scripts/autoresearch.py status"


def last_used(attempts: Mapping[str, Attempt]) -> dict[str, float]:
    """Build id -> when the newest run that used it ended, in seconds since the epoch."""
    found: dict[str, float] = {}
    for attempt in attempts.values():
        if attempt.finished is None or attempt.finished_at is None:
            continue
        at = datetime.fromisoformat(attempt.finished_at.replace("Z", "+00:00")).timestamp()
        for name in ("base_build_id", "cand_build_id"):
            build = attempt.finished.get(name)
            if build:
                found[str(build)] = max(at, found.get(str(build), 0.0))
    return found


def running_trees(ledger: Ledger) -> set[str]:
    """Trees of attempts that run now."""
    dead = {attempt.id for attempt in ledger.abandoned()}
    alive = [one for one in ledger.attempts().values() if one.finished is None and one.id not in dead]
    return {tree for one in alive for tree in (one.plan.base.tree, one.plan.cand.tree)}


def gc(wish: Wish, root: Path, now: float, voice: Voice, *, dry_run: bool) -> Outcome:
    """Free what `wish` asks for, or list it. Nothing is recorded: what is gone can be made again."""
    out = Outcome(command="gc", report=Report(phase="orient", next=NEXT), ledger=str(root / "events.jsonl"))
    out.recorded = False
    if not root.is_dir():
        out.text = [f"nothing to free: there is no root at {root}"]
        out.details = {"freed": [], "kept": [], "freed_bytes": 0, "kept_bytes": 0}
        return out
    ledger = open_ledger(root, voice)
    voice.progress("looking at what the root holds")
    with ledger.holding(), garbage.places(root) as busy:
        items = garbage.survey(root, last_used(ledger.attempts()), running_trees(ledger), busy)
        gone = garbage.choose(items, wish, now)
        trash = garbage.set_aside(root, gone) if gone and not dry_run else None
    if trash is not None:
        voice.progress(f"deleting {size(sum(item.bytes for item in gone))}")
        garbage.delete(trash)
    names = {item.name for item in gone}
    kept = [item for item in items if item.name not in names]
    freed, left = sum(item.bytes for item in gone), sum(item.bytes for item in kept)
    out.status = "planned" if dry_run else "ok"
    out.details = {
        "freed": [item.to_json() for item in gone],
        "kept": [item.to_json() for item in kept],
        "freed_bytes": freed,
        "kept_bytes": left,
    }
    out.report.inputs = ["builds/", "tmp/"]
    out.report.outputs = [] if dry_run else sorted(names)[:3] + (["..."] if len(names) > 3 else [])
    out.text = [*(_line(item, now) for item in gone)]
    out.text.append(
        f"{'would free' if dry_run else 'freed'} {size(freed)} in {counted(len(gone), 'item')}; "
        f"{size(left)} stay"
    )
    held = [item for item in kept if item.held is not None]
    out.text += [f"  stays: {item.name}: {item.held}" for item in held]
    return out


def _line(item: Item, now: float) -> str:
    days = max(0.0, now - item.used) / garbage.DAY_S
    return f"  {size(item.bytes):>9}  {item.kind:<8}  unused for {days:5.1f} days  {item.name}"


def size(count: int) -> str:
    """Bytes for people, in binary units."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024.0:
            return f"{value:.0f} {unit}"
        value /= 1024.0
    return f"{value:.1f} GiB"
