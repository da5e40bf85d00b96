"""`notify` of autoresearch.toml: a command of the user's is told what a run or a round came to.

It is called once an event as `CMD EVENT MESSAGE`, in the repository, once the event is on disk. Events: the
status of each recorded run that ended (`keep`, `discard`, `busy_invalid`, ...), and `round_` with what became
of the round (`round_open`, `round_pause`, `round_complete`, ...). What the command does, or fails to do,
changes no verdict and no exit code: a failure is said and noted in the ledger.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from cartlab import processes
from cartlab.errors import CartlabError
from cartlab.ledger import Event, Ledger
from cartlab.pipeline.voice import Voice
from cartlab.round import round_part

KIND = "notify"
LIMIT_S = 15.0


def told(events: Sequence[Event], numbers: Collection[int]) -> Iterator[tuple[str, str, str | None]]:
    """(event, message, attempt) of the events with these numbers."""
    plans = {e["attempt"]: e["body"] for e in events if e["type"] == "attempt_started"}
    for event in events:
        body, plan = event["body"], plans.get(event["attempt"], {})
        if event["seq"] not in numbers:
            continue
        if event["type"] == "round":
            text = body.get("reason") or body.get("goal", {}).get("title") or ""
            yield f"round_{body['action']}", f"{body.get('round_id', '')}: {text}".rstrip(": "), None
        elif event["type"] == "attempt_finished" and plan.get("recorded") and not plan.get("part_of"):
            names = f"{plan['cand']['name']} against {plan['base']['name']}"
            yield str(body["status"]), f"{plan['command']} {names}", event["attempt"]


def tell(command: str | None, repo: Path, root: Path, numbers: Collection[int], voice: Voice) -> None:
    """Call the command once for each of these events of the ledger that it is told of; None: nothing to
    call.
    """
    if command is None:
        return
    ledger = Ledger.open(root, mend=False, round_part=round_part)
    failed = False
    for event, message, attempt in told(ledger.events(), numbers):
        voice.progress(f"telling {event}")
        why = call(command, repo, event, message)
        if why is not None:
            failed = True
            voice.warn(f"notify: {why}; {event} is recorded all the same")
            ledger.append("note", attempt, {"file": None, "kind": KIND, "text": f"{event}: {why}"})
    if failed:
        ledger.project()


def call(command: str, repo: Path, event: str, message: str) -> str | None:
    """Run it once; what went wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="cartlab-") as folder:
        log = Path(folder) / "log"
        line = f"{command} {shlex.quote(event)} {shlex.quote(message)}"
        try:
            done = processes.run_shell(line, cwd=repo, env=os.environ, timeout_s=LIMIT_S, log=log)
        except (OSError, CartlabError) as error:
            return f"the command could not be started ({error})"
        if done.returncode == 0:
            return None
        if done.returncode is None:
            return f"the command was killed after {LIMIT_S:g} s"
        last = (log.read_text(errors="replace").strip().splitlines() or ["nothing"])[-1]
        return f"the command ended with exit code {done.returncode}; it said: {last[:200]}"
