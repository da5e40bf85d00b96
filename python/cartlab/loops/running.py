"""What the harness runs on a submitted tree: parity, train, eval. Every number of a loop is made here.

An attempt's commit is laid out afresh for each run, so what is measured is what was recorded. Train may write
in its own copy; eval gets another fresh copy with nothing but the named checkpoint from it, so that a file
that training dropped beside the evaluator is not there when it runs. The protected files are read before and
after. Without a named checkpoint eval has to run where train ran; what would change it is looked for there.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cartlab.errors import CartlabError, MetricError
from cartlab.loops import commands, manifest, metrics, trees, witness
from cartlab.loops.commands import Ran
from cartlab.loops.compliance import takes_over
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Try
from cartlab.loops.protocol import KernelTarget, Protocol, files
from cartlab.loops.witness import NOTHING_USUAL, Usual
from cartlab.model import digest_of

TRAIN_GRACE_S = 30.0
PARITY_LIMIT_S = 300.0
PARITY_SEEDS = 3
# What a run may fail of without its being the candidate's fault: asked of the end of its stderr.
TRANSIENT = re.compile(
    r"out of memory|OutOfMemory|MemoryError|cannot allocate memory|^Killed"
    r"|connection (?:reset|refused|timed out)|temporary failure in name resolution"
    r"|network is unreachable|read timed out",
    re.IGNORECASE | re.MULTILINE,
)
_PROBE = Path(__file__).with_name("parity_probe.py")


class Failed(CartlabError):
    """A run that ends the round: status is the verdict's word, `insight` what the next round should know;
    missing: the shell found no such program, or could not run it.
    """

    def __init__(self, status: str, insight: str, transient: bool = False, missing: bool = False) -> None:
        super().__init__(insight)
        self.missing = missing
        self.verdict = status
        self.insight = insight
        self.transient = transient


@dataclass(frozen=True)
class Value:
    """A metric's value: as a number and as it was printed; seq of its measurement."""

    number: float
    text: str
    seq: int


@dataclass
class Bench:
    """The runs of one attempt. top: the experiment's folder relative to the tree's top ("" for the top);
    usual: what the baseline's run was like, where the protocol asks for witnesses; more: further
    variables of the runs' environment; what: its name for people where it is no round.
    """

    desk: Desk
    one: Try
    protocol: Protocol
    top: str
    commit: str
    more: Mapping[str, str] = field(default_factory=dict)
    usual: Usual = NOTHING_USUAL
    what: str = ""
    _workload: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.what or f"round {self.one.round}"

    @property
    def _logs(self) -> Path:
        return self.desk.run_folder(self.one.id)

    def _place(self, name: str) -> Path:
        return self.desk.work_folder(self.one.id) / name

    def lay(self, name: str) -> Path:
        """The attempt's commit in a fresh folder."""
        folder = self._place(name) / "tree"
        self._clear(name)
        commands.remove(folder / ".git")  # which a layout leaves alone, and no tree holds
        trees.lay(self.desk.repo, self.commit, folder)
        return folder

    def _clear(self, name: str) -> None:
        """Take away what earlier runs left beside the tree: they may write there."""
        place = self._place(name)
        for path in place.iterdir() if place.is_dir() else ():
            if path.name != "tree":
                commands.remove(path)

    # --- parity -----------------------------------------------------------------------------------

    def parity(self, target: KernelTarget) -> str | None:
        """None where the kernel agrees with its baseline, else the PARITY_FAIL line."""
        folder = self.lay("parity") / self.top
        command = parity_command(target, self._place("parity") / "target.json")
        ran = self.run(command, "parity", folder, PARITY_LIMIT_S, f"parity-{target.name}")
        line = next(
            (text for text in ran.complaint.splitlines() if text.startswith("PARITY_FAIL ")),
            f"PARITY_FAIL target={target.name} kind=error detail="
            + (
                f"no answer within {PARITY_LIMIT_S:g} s"
                if ran.returncode is None
                else "it ended without a word"
            ),
        )
        agreed = ran.returncode == 0 and f"PARITY_OK target={target.name}" in ran.output.splitlines()
        self.desk.measured(
            self.one, "parity", target=target.name, agreed=agreed, tree=self._tree(), seconds=ran.seconds
        )
        return None if agreed else commands.plain(line, 400)

    def workload(self, protected: manifest.Manifest) -> str:
        """The hash of what a value means: commands, limits, and the protected files. Equal on both sides of a
        comparison; it holds no seed and no path.
        """
        protocol = self.protocol
        return digest_of(
            [
                protocol.train_command,
                protocol.eval_command,
                protocol.time_limit,
                protocol.epoch_limit,
                manifest.digest(protected),
            ]
        )

    # --- train and eval ---------------------------------------------------------------------------

    def value(self, seed: int, name: str = "") -> Value:
        """Train where the protocol has a train command, then eval; Failed where either does not do."""
        folder = self.lay("train")
        protected = self._protected(folder)
        self._workload = self.workload(protected)
        if self.protocol.train_command:
            self._train(folder, seed, name)
            self._unchanged(protected, folder, "training")
        place = folder
        if self.protocol.checkpoint:
            place = self.lay("eval")
            self._carry(folder, place)
        else:
            self._clear("eval")
            self._no_strangers(folder)
        found = self._eval(place, seed, name)
        self._unchanged(protected, place, "evaluation")
        return found

    def _train(self, folder: Path, seed: int, name: str) -> None:
        protocol = self.protocol
        for path in self._checkpoints(folder):
            path.unlink()
        command = commands.fill(
            protocol.train_command,
            time_limit=f"{protocol.time_limit_s:g}",
            epoch_limit=protocol.epoch_limit,
            seed=seed,
        )
        limit = protocol.time_limit_s + TRAIN_GRACE_S
        self.desk.voice.progress(f"{self.name}: training (at most {limit:g} s)")
        through = self.desk.options.launcher
        ran = self.run(command, "train", folder / self.top, limit, f"train{name}", seed, through=through)
        self.desk.measured(
            self.one,
            "train",
            tree=self._tree(),
            command=digest_of(command),
            seconds=ran.seconds,
            returncode=ran.returncode,
            seed=seed,
            workload=self._workload,
            left=ran.left,
            log=ran.stdout.name,
            **self._elsewhere(),
        )
        if ran.returncode is None:
            raise Failed(
                "timeout",
                f"timeout after {limit:g}s — likely cause: the training does not end at its time_limit",
            )
        if ran.returncode != 0:
            words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
            transient = bool(TRANSIENT.search(ran.complaint)) or ran.returncode in (-9, 137)
            cause = "the machine ran short" if transient else "an error in the code of this round"
            raise Failed("crashed", f"crash: {words}. Likely cause: {cause}", transient)
        if why := witness.early(ran.seconds, protocol.time_limit_s, protocol.witnesses.min_time_share):
            raise Failed("checks_failed", why)
        if protocol.checkpoint and not self._checkpoints(folder):
            raise Failed(
                "crashed",
                f"crash: training ended without its checkpoint {protocol.checkpoint}. Likely cause: it was "
                "written elsewhere or not at all",
            )

    def _elsewhere(self) -> dict[str, str]:
        """What a training's record says where a launcher ran it."""
        launcher = self.desk.options.launcher
        return {"isolation": "process", "launcher": digest_of(launcher)} if launcher else {}

    def _eval(self, folder: Path, seed: int, name: str) -> Value:
        self.desk.voice.progress(f"{self.name}: evaluating")
        why = ""
        for go in range(self.desk.options.eval_retries + 1):
            label = f"eval{name}" + (f"-{go + 1}" if go else "")
            nonce = secrets.token_hex(8) if self.protocol.witnesses.nonce else None
            ran = self.run(
                self.protocol.eval_command,
                "eval",
                folder / self.top,
                self.desk.options.eval_limit_s,
                label,
                seed,
                {} if nonce is None else {"AR_NONCE": nonce},
            )
            number, text, why = self._read_value(ran, nonce)
            claims = metrics.ours(ran.output, nonce).values if number is not None else {}
            stated = claims.get(self.protocol.witnesses.seconds)
            done = claims.get(self.protocol.witnesses.work)
            seq = self.desk.measured(
                self.one,
                "eval",
                tree=self._tree(),
                command=digest_of(self.protocol.eval_command),
                value=number,
                text=text,
                problem=why or None,
                seconds=ran.seconds,
                stated_s=stated,
                work=done,
                seed=seed,
                workload=self._workload,
                returncode=ran.returncode,
                left=ran.left,
            )
            if number is not None:
                self._believe(ran, stated, done)
                return Value(number, text, seq)
            if go == 0 and self.protocol.env_repair:
                self._repair(folder)
        raise Failed("metric_error", f"evaluation failed: {why}")

    def _believe(self, ran: Ran, stated: float | None, done: float | None) -> None:
        """The evaluation's own words held against the clock and the baseline's work."""
        asked = self.protocol.witnesses
        if asked.seconds and stated is None:
            raise Failed("metric_error", f"evaluation failed: no line METRIC {asked.seconds}=<seconds>")
        if stated is not None and (why := witness.clock(stated, ran.seconds, self.usual.unaccounted_s)):
            raise Failed("tampered", why)
        if why := witness.work(done, self.usual.work):
            raise Failed("behaviour_changed", why)

    def _read_value(self, ran: Ran, nonce: str | None) -> tuple[float | None, str, str]:
        if ran.returncode is None:
            return None, "", f"no end within {self.desk.options.eval_limit_s:g} s"
        if ran.returncode != 0:
            words = (ran.complaint.splitlines() or ["no output"])[-1]
            return None, "", commands.plain(f"exit code {ran.returncode}: {words}", 300)
        try:
            number = metrics.primary(ran.output, self.protocol.metric, nonce)
        except MetricError as error:
            return None, "", error.message
        if why := witness.outside(number, self.protocol.witnesses.bounds):
            return None, "", why
        return number, metrics.written(ran.output, self.protocol.metric, nonce), ""

    def _repair(self, folder: Path) -> None:
        """env_repair once: the user's own command, which may install what is missing anywhere, so it is not
        confined; it may not touch a protected file.
        """
        before = self._protected(folder)
        ran = commands.run(
            self.protocol.env_repair,
            cwd=folder / self.top,
            env=commands.researcher_environment({}),
            limit_s=self.desk.options.eval_limit_s,
            folder=self._logs,
            name="env-repair",
        )
        self.desk.measured(
            self.one,
            "env_repair",
            tree=self._tree(),
            returncode=ran.returncode,
            seconds=ran.seconds,
            isolation="process",
        )
        self._unchanged(before, folder, "env_repair")

    # --- inside -----------------------------------------------------------------------------------

    def run(
        self,
        command: str,
        place: str,
        cwd: Path,
        limit_s: float,
        name: str,
        seed: int | None = None,
        extra: Mapping[str, str] | None = None,
        readable: tuple[Path, ...] = (),
        through: str = "",
    ) -> Ran:
        """One command in a clean environment, able to write in the folder of `place` alone.

        through: a launcher that runs it elsewhere instead. It is the user's own command and was approved: it
        has the user's environment, and nothing confines it.
        """
        own = self._place(place)
        told = {
            **(extra or {}),
            "AR_TIME_LIMIT": f"{self.protocol.time_limit_s:g}",
            "AR_EPOCH_LIMIT": self.protocol.epoch_limit,
            **self.more,
        }
        if seed is not None:
            told["AR_SEED"] = str(seed)
        if through:
            line = through.replace("{command}", shlex.quote(command))
            env = commands.researcher_environment(told)
            return commands.run(line, cwd=cwd, env=env, limit_s=limit_s, folder=self._logs, name=name)
        env = commands.measured_environment(own, told)
        wrapped = self.desk.wrap(command, own, readable=(cwd, *readable))
        return commands.run(wrapped, cwd=cwd, env=env, limit_s=limit_s, folder=self._logs, name=name)

    def _tree(self) -> str:
        return trees.tree_of(self.desk.repo, self.commit)

    def _fixed(self) -> tuple[str, ...]:
        return rooted(self.top, self.protocol.fixed)

    def _protected(self, folder: Path) -> manifest.Manifest:
        return manifest.matching(manifest.scan(folder), self._fixed())

    def _unchanged(self, before: manifest.Manifest, folder: Path, during: str) -> None:
        changed = manifest.changes(before, self._protected(folder))
        if changed:
            raise Failed(
                "tampered",
                f"modified fixed file {changed[0].path} — it was {changed[0].what} during {during}, which no "
                "training or evaluation may do",
            )

    def _checkpoints(self, folder: Path) -> list[Path]:
        globs = rooted(self.top, files(self.protocol.checkpoint))
        return [folder / path for path in manifest.matching(manifest.scan(folder), globs)]

    def _carry(self, source: Path, target: Path) -> None:
        """The checkpoint, and it alone, from training to evaluation; a copy stays with the attempt's logs."""
        for path in self._checkpoints(source):
            name = path.relative_to(source)
            for place in (target / name, self._logs / "checkpoint" / name):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)

    def _no_strangers(self, folder: Path) -> None:
        laid = trees.manifest_of(self.desk.repo, self.commit)
        for path in manifest.scan(folder):
            if path not in laid and (why := takes_over(path)):
                raise Failed("tampered", f"training left {path} beside the evaluation: {why}")


def rooted(top: str, globs: tuple[str, ...]) -> tuple[str, ...]:
    """Globs of the experiment's folder as globs of the tree."""
    return tuple(f"{top}/{glob}" if top else glob for glob in globs)


def parity_command(target: KernelTarget, spec: Path) -> str:
    """The command that compares one target, its description written to `spec` with seeds of ours. It runs
    under the candidate's own Python, as its train command would find it.
    """
    seeds = [secrets.randbelow(2**31) for _ in range(PARITY_SEEDS)]
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(json.dumps({**target.to_json(), "seeds": seeds}), encoding="utf-8")
    python = "python3" if shutil.which("python3") else sys.executable
    return "exec " + shlex.join([python, str(_PROBE), str(spec)])
