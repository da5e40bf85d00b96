"""The ledger of a state root: events.jsonl under a lock, and the views that are made from it.

Contract: SPECS.md section 6. append() returns only when the event is on disk; kill -9 at any moment
loses at most what had not returned. Writers of any number of processes take turns (flock on
autoresearch.lock); readers share it, so a last line without its newline is torn, never a write in progress.
Views are deleted and rebuilt at will.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cartlab.disk import Disk, append_bytes, current, replace_bytes
from cartlab.errors import BadRoot, DamagedLedger
from cartlab.ledger.attempts import Attempt, attempts_of, blocks_of, floor_of, verdict_of
from cartlab.ledger.chain import Event, Tip, encode, read
from cartlab.ledger.current import current_of
from cartlab.ledger.rows import results_tsv
from cartlab.model import Block, Json, PairKey

EVENTS = "events.jsonl"
LOCK = "autoresearch.lock"
TEXTS = ("ideas.md", "scratchpad.md")
FOLDERS = ("benchmarks/runs", "builds", "tmp")

# Number and hash of the events that this process appended, in order: what it did itself, whoever else writes.
# A number alone may be that of another ledger's event.
written: list[tuple[int, str]] = []


def utc_now() -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Ledger:
    """One state root's events and views. Make it with Ledger.open().

    reports: lines for people about what open() found and repaired (a torn line that was cut off).
    """

    def __init__(
        self,
        root: Path,
        disk: Disk,
        now: Callable[[], str],
        round_part: Callable[[Sequence[Event]], Json] | None,
    ) -> None:
        self.root = root
        self.reports: list[str] = []
        self._disk = disk
        self._now = now
        self._round_part = round_part
        self._tip = Tip()
        self._events: list[Event] = []
        self._held = 0
        # Threads of one process (a campaign's slots) take turns like processes do.
        self._turn = threading.RLock()

    @classmethod
    def open(
        cls,
        root: str | Path,
        repair: bool = False,
        *,
        mend: bool = True,
        disk: Disk | None = None,
        now: Callable[[], str] = utc_now,
        round_part: Callable[[Sequence[Event]], Json] | None = None,
    ) -> Ledger:
        """Open the ledger of an existing folder, verify the chain, and cut off a torn last line.

        mend: False for who only reads (a dry run, an export): a torn last line is reported and left, and no
        file is made. repair: set aside a damaged line and all after it, instead of raising DamagedLedger.
        round_part: events -> the round's keys of current.json. disk, now: the tests' hands on the writes and
        the clock.
        """
        folder = Path(root)
        if not folder.is_dir():
            raise BadRoot(
                f"expected a state folder, found nothing at {folder}", "run `autoresearch.py init` first"
            )
        ledger = cls(folder, disk or current(), now, round_part)
        ledger._check(repair, mend)
        return ledger

    # --- reading ---------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """All events, verified. Reads what others have appended since."""
        with self._lock(shared=True):
            self._catch_up()
            return list(self._events)

    def attempts(self) -> dict[str, Attempt]:
        """All attempts in the order they started."""
        return attempts_of(self.events())

    def blocks_of(self, pair: PairKey, unit: str = "block", before: str | None = None) -> list[Block]:
        """The pair's block sequence in ledger order (attempts.blocks_of)."""
        return blocks_of(self.attempts(), pair, unit, before)

    def verdict_of(
        self, pair: PairKey, tier: str, policy_hash: str
    ) -> tuple[Attempt, Mapping[str, Any]] | None:
        """The recorded verdict that answers for this pair and tier, or None (attempts.verdict_of)."""
        return verdict_of(self.attempts(), pair, tier, policy_hash)

    def floor_of(self, host_class: str) -> float | None:
        """1 + the newest relink floor of this class of host, None if there is none."""
        return floor_of(self.attempts(), host_class)

    @property
    def tip(self) -> tuple[int, str]:
        """seq and hash of the last event that this object has seen; (0, 64 zeros) when there is none."""
        return self._tip.seq, self._tip.hash

    # --- writing ---------------------------------------------------------------------------------

    def append(self, kind: str, attempt: str | None, body: Json) -> Event:
        """Append one event and return it once it is on disk. Raises BadRoot where the disk refuses."""
        with self._lock():
            self._catch_up()
            return self._append(kind, attempt, body)

    def transact(self, make: Callable[[Sequence[Event]], tuple[str, str | None, Json]]) -> Event:
        """Append what `make` gives from all events so far, with no other writer in between; make may raise
        instead.
        """
        with self._lock():
            self._catch_up()
            return self._append(*make(list(self._events)))

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """While it is held no other process appends, so no attempt starts; for what must not meet one."""
        with self._lock():
            self._catch_up()
            yield

    def _append(self, kind: str, attempt: str | None, body: Json) -> Event:
        line, event = encode(self._tip, self._now(), kind, attempt, body)
        created = not self._path.exists()
        with self._refusals():
            append_bytes(self._disk, self._path, line)
            if created:
                self._disk.sync_folder(self.root)
        self._tip = Tip(event["seq"], event["hash"], self._tip.size + len(line), self._tip.lines + 1)
        self._events.append(event)
        written.append((event["seq"], event["hash"]))
        return event

    def note(self, file: str, text: str, attempt: str | None = None, kind: str = "note") -> Event:
        """Record a text and append it as a stamped block to ideas.md or scratchpad.md; no other byte
        changes.
        """
        if file not in TEXTS:
            raise ValueError(f"expected one of {', '.join(TEXTS)}; found {file!r}")
        with self._lock():
            self._catch_up()
            event = self._append("note", attempt, {"file": file, "kind": kind, "text": text})
            path = self.root / file
            old = path.read_bytes() if path.exists() else b""
            gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
            with self._refusals():
                append_bytes(self._disk, path, gap + stamped(event).encode())
        return event

    def project(self) -> None:
        """Rewrite results.tsv and current.json from the events, each atomically."""
        with self._lock():
            self._catch_up()
            part = self._round_part(self._events) if self._round_part else None
            view = json.dumps(current_of(self._events, part), indent=2, ensure_ascii=False) + "\n"
            with self._refusals():
                # Who died between writing and renaming left these; nobody else writes under this lock.
                for left in self.root.glob(".*.new"):
                    self._disk.remove(left)
                replace_bytes(self._disk, self.root / "results.tsv", results_tsv(self._events).encode())
                replace_bytes(self._disk, self.root / "current.json", view.encode())

    def init(self) -> list[str]:
        """Make whatever the root lacks; returns the names made. Existing files keep their bytes."""
        made = []
        with self._lock(), self._refusals():
            for name in FOLDERS:
                if not (self.root / name).is_dir():
                    self._disk.make_folder(self.root / name)
                    made.append(name + "/")
            for name in (EVENTS, *TEXTS):
                if not (self.root / name).exists():
                    append_bytes(self._disk, self.root / name, b"")
                    made.append(name)
        made += [name for name in ("results.tsv", "current.json") if not (self.root / name).exists()]
        self.project()
        return made

    # --- running attempts ------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self, attempt: str) -> Iterator[None]:
        """Hold the attempt's own lock while it runs: it is released when the process dies, however it
        dies.
        """
        folder = self.root / "tmp"
        path = folder / f"{attempt}.running"
        with self._refusals():
            self._disk.make_folder(folder)
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            self._disk.remove(path)
            os.close(fd)

    def abandoned(self) -> list[Attempt]:
        """Attempts that never finished and whose process is gone."""
        return [a for a in self.attempts().values() if a.finished is None and not self._is_running(a.id)]

    def _is_running(self, attempt: str) -> bool:
        try:
            fd = os.open(self.root / "tmp" / f"{attempt}.running", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def close_abandoned(self) -> list[str]:
        """Finish abandoned attempts: with their verdict if there was one, else as interrupted. Returns
        their ids.
        """
        closed = []
        for attempt in self.abandoned():
            body, status = attempt.decision, "interrupted"
            if body is not None and body.get("final", True):
                status = str(body["status"])
            reason = "its process ended before it was finished"
            self.append("attempt_finished", attempt.id, {"status": status, "limit_stop_reason": reason})
            closed.append(attempt.id)
        return closed

    # --- inside ----------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self.root / EVENTS

    @contextlib.contextmanager
    def _lock(self, shared: bool = False) -> Iterator[None]:
        """flock on the lock file; nested calls of one object share the outermost lock."""
        with self._turn:
            if self._held:
                self._held += 1
                try:
                    yield
                finally:
                    self._held -= 1
                return
            fd = self._open_lock(shared)
            if fd is None:
                yield
                return
            try:
                fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
                self._held = 0 if shared else 1
                yield
            finally:
                self._held = 0
                os.close(fd)

    def _open_lock(self, shared: bool) -> int | None:
        try:
            return os.open(self.root / LOCK, os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            # Where no lock was ever made, or nobody may write, nobody writes; reading makes no file.
            if shared and error.errno in (errno.EACCES, errno.EROFS, errno.ENOENT):
                return None
            raise BadRoot(
                f"expected a writable state folder at {self.root}, found: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadRoot(
                f"the ledger could not be written: {error.strerror or error}",
                "make room or fix the folder's permissions; everything recorded so far is safe",
            ) from error

    def _read_new(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._tip.size)
                return file.read()
        except FileNotFoundError:
            return b""

    def _catch_up(self) -> bytes:
        """Take in what others have appended; returns the torn bytes at the end, which a writer cuts off."""
        if self._path.exists() and self._path.stat().st_size < self._tip.size:
            raise DamagedLedger(f"{EVENTS} line {self._tip.lines}: the file became shorter while it was open")
        found = read(self._read_new(), self._tip, EVENTS)
        self._events += found.events
        self._tip = found.tip
        if found.torn and self._held:
            self._cut(found.torn)
        return found.torn

    def _check(self, repair: bool, mend: bool) -> None:
        """The first reading: whole chain, torn tail, and with `repair` the damage."""
        try:
            with self._lock(shared=True):
                torn = self._catch_up()
                self._check_end()
        except DamagedLedger as error:
            if not repair:
                raise
            self._set_aside(error)
            return
        if torn and mend:
            with self._lock():
                self._catch_up()
        elif torn:
            line = self._tip.lines + 1
            self.reports.append(
                f"{EVENTS} line {line}: a torn last line of {len(torn)} bytes; the next command that records "
                "something cuts it off"
            )

    def _check_end(self) -> None:
        """current.json is made after its events are on disk: one that knows of more tells that the ledger
        lost its end, be it whole lines. A chain that was made anew is `verify`'s to find.
        """
        try:
            seq = int(json.loads((self.root / "current.json").read_bytes())["last_seq"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        last = self._events[-1] if self._events else None
        repaired = last is not None and last["type"] == "repair"  # and died before the views were made anew
        if seq <= len(self._events) or repaired:
            return
        raise DamagedLedger(
            f"{EVENTS} line {self._tip.lines + 1}: current.json was made of {seq} events, the ledger has "
            f"{len(self._events)} of them",
            "restore the file from a copy, or go on without them by `init --repair`, which records the loss",
            details={"line": self._tip.lines + 1, "good_bytes": self._tip.size, "known": seq},
        )

    def _cut(self, torn: bytes) -> None:
        """Cut off a torn last line and record that; under the exclusive lock."""
        with self._refusals():
            fd = os.open(self._path, os.O_WRONLY)
            try:
                self._disk.truncate(fd, self._tip.size)
                self._disk.fsync(fd)
            finally:
                os.close(fd)
        line = self._tip.lines + 1
        self.reports.append(f"{EVENTS} line {line}: a torn last line of {len(torn)} bytes was cut off")
        self._append(
            "repair",
            None,
            {"what": "torn", "line": line, "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()},
        )

    def _set_aside(self, damage: DamagedLedger) -> None:
        """Move the damaged line and all after it into a file of their own."""
        with self._lock():
            good = int(damage.details["good_bytes"])
            data = self._path.read_bytes()
            found = read(data[:good])
            bad = data[good:]
            # Nothing is there to be set aside where the end itself is gone.
            name = f"{EVENTS}.damaged-{hashlib.sha256(bad).hexdigest()[:12]}" if bad else None
            with self._refusals():
                if name is not None:
                    replace_bytes(self._disk, self.root / name, bad)
                fd = os.open(self._path, os.O_WRONLY)
                try:
                    self._disk.truncate(fd, good)
                    self._disk.fsync(fd)
                finally:
                    os.close(fd)
            self._tip, self._events = found.tip, found.events
            line = damage.details["line"]
            what = (
                f"damaged; it and all after it are now in {name}" if name else "it and all after it are gone"
            )
            self.reports.append(f"{EVENTS} line {line}: {what}")
            self._append("repair", None, {"what": "damaged", "line": line, "bytes": len(bad), "file": name})


def stamped(event: Event) -> str:
    """The block that a note leaves in a people's file."""
    body = event["body"]
    return f"<!-- cartlab {body['kind']} seq {event['seq']} {event['time']} -->\n{body['text'].rstrip()}\n"
