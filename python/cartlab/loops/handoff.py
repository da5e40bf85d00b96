"""From a design document to a loop that can start: the readiness gates, then the two files.

Each gate runs what the loop will run, in a copy of HEAD that is thrown away, so the experiment's folder keeps
every byte. A gate that does not hold stops the handoff with what was expected and what was found.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cartlab.artefacts import read_text
from cartlab.errors import BadInput, CartlabError, MetricError, NotLegalNow
from cartlab.loops import commands, experiences, manifest, metrics, protocol, trees, witness
from cartlab.loops.commands import Ran
from cartlab.loops.design import Design
from cartlab.loops.desk import EVAL_LIMIT_S
from cartlab.loops.dispatch import VIEW_NAMES
from cartlab.loops.experiences import Experiences, Row
from cartlab.loops.protocol import PROFILE_TODO
from cartlab.loops.running import PARITY_LIMIT_S, TRAIN_GRACE_S, parity_command, rooted
from cartlab.model import parsed_json
from cartlab.pipeline.voice import Voice
from cartlab.sources import git

TINY_LIMIT_S = 5.0
TINY_EPOCHS = "1"
NO_PROFILE = (
    "Build phase did not produce a profile_command. Add one to the design doc (and commit it to the "
    "experiment) before re-running handoff. We can't enter the iteration loop without a runnable profile "
    "command for perf-mode research."
)


class GateFailed(CartlabError):
    """The experiment is not ready; the message names the gate."""

    code = 23
    status = "refused"


@dataclass(frozen=True)
class Evidence:
    """What VP L1 left: the metric's value as printed, and its checkpoint's files by sha256."""

    value: str
    checkpoint: Mapping[str, str]
    source: Path | None = None


@dataclass(frozen=True)
class Ready:
    """What the gates found: the evidence of VP L1, the value of a further evaluation, and the seconds to the
    first line of output.
    """

    evidence: Evidence
    again: str
    first_line_s: float


@dataclass
class Handoff:
    """One handoff. experiment: the folder of the design document's experiment; place: a folder of ours for
    copies and logs; tiny_s: the time limit of the pressure gate.
    """

    repo: Path
    experiment: Path
    design: Design
    place: Path
    voice: Voice
    tiny_s: float = TINY_LIMIT_S

    def __post_init__(self) -> None:
        self.protocol = self.design.protocol
        self.top = self._top()
        self.told: list[str] = []
        self.runs: list[dict[str, object]] = []

    def _top(self) -> str:
        try:
            top = self.experiment.resolve().relative_to(self.repo.resolve()).as_posix()
        except ValueError:
            raise BadInput(
                f"the experiment must lie in the repository {self.repo}; found {self.experiment}",
                "give --experiment DIR inside it",
            ) from None
        return "" if top == "." else top

    def carry_out(
        self, evidence: Path | None = None, *, run_vp: bool = False, hints: str = "", locale: str = "zh"
    ) -> Ready:
        """All gates in the document's order, then both files. evidence: a record of VP L1; run_vp: make one
        where none is given and none of this tree was made before. NotLegalNow, GateFailed or BadInput at the
        first gate that does not hold; nothing is written then.
        """
        metric = self.design.protocol.metric
        self.git_state()
        self.eval_is_fixed()
        recorded = evidence or self.place / "vp-l1.json"
        if evidence is None and not run_vp:
            raise GateFailed(
                "handoff needs the evidence of VP L1, for its metric is the loop's baseline; none was given",
                "add --run-vp to run train and eval once now, or --vp-evidence FILE",
            )
        found = read_evidence(recorded, metric) if evidence or recorded.is_file() else None
        first = self.speed()
        self.pressure()
        if found is None:
            found = self.vp()
            write_evidence(found, metric, self.place)
        again = self.evaluation(found)
        self.profile()
        self.kernels()
        self._write(found, hints, locale)
        self.clean()
        return Ready(found, again, first)

    # --- the gates, in the document's order -------------------------------------------------------

    def git_state(self) -> str:
        """A clean tree (the two files aside) whose HEAD has the base code; returns HEAD."""
        ours = set(rooted(self.top, VIEW_NAMES))
        dirty = [path for path in git.dirty(self.repo) if path not in ours]
        if dirty:
            raise NotLegalNow(
                f"handoff needs a clean work tree; changed paths: {len(dirty)}, {', '.join(dirty[:3])}",
                "commit the base code first",
            )
        head = trees.commit_of(self.repo, "HEAD")
        inside = trees.manifest_of(self.repo, head)
        for name in (*self.protocol.variable, self.design.gates.get("base_code", "")):
            if name and not manifest.matching(inside, rooted(self.top, (name,))):
                raise NotLegalNow(
                    f"HEAD must contain the base code; it has no {name} in {self.experiment.name}",
                    "commit it, or correct the design document",
                )
        return head

    def eval_is_fixed(self) -> None:
        """The script that evaluates has to be among the fixed files; it is added where it is not."""
        name = script_of(self.protocol.eval_command, self.experiment)
        named = [glob for glob in self.protocol.fixed if (self.experiment / glob).is_file()]
        if name is None and not any(Path(glob).name in self.protocol.eval_command for glob in named):
            raise GateFailed(
                f"the evaluation's script must be named; {self.protocol.eval_command!r} names none",
                "add the script that evaluates to the fixed files, or call it by its path",
            )
        if name is not None and not manifest.named(name, self.protocol.fixed):
            self.protocol = replace(self.protocol, fixed=(*self.protocol.fixed, name))
            self.told.append(f"{name} was added to Fixed.files: it is what evaluates")

    def speed(self) -> float:
        """The first line of output has to come within first_step_max_s; returns its seconds."""
        limit = float(self.design.gates["first_step_max_s"])
        command = self.design.gates.get("first_step_command") or self.protocol.train_command
        if not command:
            raise GateFailed(
                "the speed of the first step must be measured; the design document names no command for it",
                "set train_command, or first_step_command",
            )
        ran = self._train(command, self.protocol.time_limit_s, "first-step", limit + TRAIN_GRACE_S)
        first = ran.first_output_s
        if first is None or first > limit:
            found = "no line of output" if first is None else f"the first line after {first:.1f} s"
            raise GateFailed(
                f"the baseline's first step must print within {limit:g} s; found {found}",
                "make the baseline faster first: every round pays for it",
            )
        return first

    def pressure(self) -> None:
        """Under tiny limits, of time and of epochs, training ends by itself and leaves a checkpoint."""
        if not self.protocol.train_command:
            raise GateFailed(
                "the limits must be seen to work; the design document has no train_command",
                "set train_command: the supervisor runs it in every round",
            )
        hard = self.tiny_s + TRAIN_GRACE_S
        epochs = TINY_EPOCHS if self.protocol.epoch_limit else ""
        ran = self._train(self.protocol.train_command, self.tiny_s, "pressure", hard, epochs)
        if ran.returncode is None:
            raise GateFailed(
                f"training must end by itself within time_limit + {TRAIN_GRACE_S:g} s; under a time_limit of "
                f"{self.tiny_s:g} s it did not",
                "read AR_TIME_LIMIT, or use {time_limit} in train_command",
            )
        if ran.returncode != 0:
            raise GateFailed(
                f"training must succeed under a time_limit of {self.tiny_s:g} s; it ended with "
                f"{ran.returncode}: {_last(ran)}"
            )
        if self.protocol.checkpoint and not self._checkpoints(self.place / "pressure" / "tree"):
            raise GateFailed(
                f"training must leave {self.protocol.checkpoint} when its time is up; it left no checkpoint",
                "save before the time limit ends",
            )

    def vp(self) -> Evidence:
        """Run train and eval once under the limits, and keep the checkpoint: VP L1."""
        ran = self._train(
            self.protocol.train_command,
            self.protocol.time_limit_s,
            "vp",
            self.protocol.time_limit_s + TRAIN_GRACE_S,
        )
        if ran.returncode != 0:
            raise GateFailed(f"VP L1 must train; it ended with {ran.returncode}: {_last(ran)}")
        found = self._checkpoints(self.place / "vp" / "tree")
        for path in found:
            self._keep(path, self.place / "vp" / "tree")
        return Evidence(
            self._evaluate("vp-eval", self.place / "checkpoint"),
            {self._name(path, self.place / "vp" / "tree"): _sha256(path) for path in found},
            self.place / "checkpoint",
        )

    def evaluation(self, evidence: Evidence) -> str:
        """Twice outside training, with VP L1's checkpoint in place: one parseable value, the same one."""
        first = self._evaluate("eval-1", evidence.source)
        second = self._evaluate("eval-2", evidence.source)
        off = abs(float(first) - float(second))
        if off > self.protocol.eval_tolerance:
            raise GateFailed(
                f"the evaluation must give the same value twice; it gave {first} and {second}",
                "make it deterministic, or state eval_tolerance",
            )
        return first

    def profile(self) -> None:
        """profile_command runs on the baseline and says something."""
        command = self.protocol.profile_command
        if not command:
            return
        if command == PROFILE_TODO:
            raise GateFailed(f"profile_command is `{PROFILE_TODO}`", NO_PROFILE)
        ran = self._run(command, self._lay("profile"), "profile", EVAL_LIMIT_S)
        if ran.returncode != 0:
            raise GateFailed(
                f"profile_command must succeed on the baseline; it ended with {ran.returncode}: "
                f"{ran.complaint}",
                "fix profile_command and run handoff again",
            )
        if not ran.output.strip():
            raise GateFailed(
                "profile_command must print at least one line; it printed none", "print the hotspots' times"
            )

    def kernels(self) -> None:
        """Each kernel target's module exists, and agrees with the baseline it re-exports."""
        for target in self.protocol.kernel_targets:
            module = target.new_module.partition(":")[0]
            path = Path(*module.split("."))
            if not any(
                (self.experiment / one).is_file() for one in (path.with_suffix(".py"), path / "__init__.py")
            ):
                base = target.baseline_module.partition(":")[0]
                raise GateFailed(
                    f"kernel target {target.name}: there is no {path.with_suffix('.py').as_posix()}",
                    f"create {path.with_suffix('.py').as_posix()} as a re-export of {base} so that baseline "
                    "parity is trivially passable, then re-run handoff.",
                )
            folder = self._lay("parity")
            command = parity_command(target, self.place / "parity" / "target.json")
            ran = self._run(command, folder, f"parity-{target.name}", PARITY_LIMIT_S)
            if ran.returncode != 0:
                line = next(
                    (t for t in ran.complaint.splitlines() if t.startswith("PARITY_FAIL")), ran.complaint
                )
                raise GateFailed(line or f"PARITY_FAIL target={target.name} kind=error detail=no answer")

    # --- the files --------------------------------------------------------------------------------

    def _write(self, evidence: Evidence, hints: str, locale: str) -> None:
        """Write both files; NotLegalNow where rounds were run already."""
        final = replace(self.protocol, baseline=evidence.value)
        path = self.experiment / "experiences.md"
        if path.is_file():
            status = experiences.parse(read_text(path, "experiences.md")).status
            if status != "not_started":
                raise NotLegalNow(
                    f"handoff overwrites no experiences.md of a loop that ran; its status is {status}",
                    "move it away to start another loop",
                )
        row = Row(0, "✅", final.baseline, "—", f"baseline: {final.title}", "initial", hints)
        view = Experiences(final.metric, final.baseline, 0, 0, final.max_rounds, "not_started", (row,))
        _write(self.experiment / "autoresearch-protocol.md", protocol.render(final, locale))
        _write(path, experiences.render(view))
        self.protocol = final

    def launch(self) -> list[str]:
        """The block that tells how to go on."""
        return [
            "Handoff complete:",
            f"- Protocol: {self.experiment / 'autoresearch-protocol.md'}",
            f"- Experiences: {self.experiment / 'experiences.md'}",
            f"- Baseline: {self.protocol.metric} = {self.protocol.baseline}",
            f"- Max rounds: {self.protocol.max_rounds}",
            "",
            "To start — open a new session and say:",
            "",
            f"  run autoresearch at {self.experiment}",
        ]

    def clean(self) -> None:
        """Remove the copies; logs, the evidence and its checkpoint stay."""
        for entry in self.place.iterdir():
            if entry.is_dir() and entry.name not in ("logs", "checkpoint"):
                shutil.rmtree(entry)

    # --- inside -----------------------------------------------------------------------------------

    def _lay(self, name: str) -> Path:
        folder = self.place / name / "tree"
        trees.lay(self.repo, "HEAD", folder)
        return folder / self.top

    def _run(
        self,
        command: str,
        cwd: Path,
        name: str,
        limit_s: float,
        limit: float | None = None,
        nonce: str | None = None,
        epochs: str | None = None,
    ) -> Ran:
        self.voice.progress(f"handoff: {name}")
        own = cwd
        while own.parent != self.place:
            own = own.parent
        extra = {
            "AR_TIME_LIMIT": f"{self.protocol.time_limit_s if limit is None else limit:g}",
            "AR_EPOCH_LIMIT": self.protocol.epoch_limit if epochs is None else epochs,
            "AR_SEED": "0",
            **({} if nonce is None else {"AR_NONCE": nonce}),
        }
        ran = commands.run(
            command,
            cwd=cwd,
            env=commands.measured_environment(own, extra),
            limit_s=limit_s,
            folder=self.place / "logs",
            name=name,
        )
        self.runs.append({"name": name, "returncode": ran.returncode, "seconds": round(ran.seconds, 3)})
        return ran

    def _train(self, command: str, limit: float, name: str, hard: float, epochs: str | None = None) -> Ran:
        given = self.protocol.epoch_limit if epochs is None else epochs
        folder = self._lay(name)
        for path in self._checkpoints(self.place / name / "tree"):
            path.unlink()
        filled = commands.fill(command, time_limit=f"{limit:g}", epoch_limit=given, seed=0)
        return self._run(filled, folder, name, hard, limit, epochs=given)

    def _checkpoints(self, tree: Path) -> list[Path]:
        if not self.protocol.checkpoint:
            return []
        globs = rooted(self.top, protocol.files(self.protocol.checkpoint))
        return [tree / path for path in manifest.matching(manifest.scan(tree), globs)]

    def _name(self, path: Path, tree: Path) -> str:
        return path.relative_to(tree / self.top).as_posix()

    def _keep(self, path: Path, tree: Path) -> None:
        place = self.place / "checkpoint" / self._name(path, tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)

    def _evaluate(self, name: str, checkpoint: Path | None) -> str:
        folder = self._lay(name)
        if checkpoint is not None and checkpoint.is_dir():
            shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
        asked = self.protocol.witnesses
        nonce = secrets.token_hex(8) if asked.nonce else None
        ran = self._run(self.protocol.eval_command, folder, name, EVAL_LIMIT_S, nonce=nonce)
        if ran.returncode is None:
            raise GateFailed(
                f"the evaluation must end by itself, with no terminal; it had not after {EVAL_LIMIT_S:g} s",
                "it must not wait for input",
            )
        if ran.returncode != 0:
            raise GateFailed(
                f"the evaluation must succeed outside training; it ended with {ran.returncode}: {_last(ran)}",
                "fix it now: it is the source of truth for the whole loop",
            )
        try:
            number = metrics.primary(ran.output, self.protocol.metric, nonce)
        except MetricError as error:
            raise GateFailed(error.message, error.hint) from None
        if why := witness.outside(number, asked.bounds):
            raise GateFailed(f"the baseline must be possible itself: {why}", "correct `bounds`")
        return metrics.written(ran.output, self.protocol.metric, nonce)


def read_evidence(path: Path, metric: str) -> Evidence:
    """A VP L1 record: JSON with `metric`, `value`, and `checkpoint` {path: sha256} relative to the file."""
    try:
        body = parsed_json(path.read_text(encoding="utf-8"))
        value, listed = str(body["value"]), dict(body.get("checkpoint") or {})
        float(value)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"VP L1 evidence must be JSON with metric, value and checkpoint; {path}: {error}",
            "`handoff --run-vp` makes it",
        ) from None
    if body.get("metric") != metric:
        raise BadInput(f"the evidence must be of {metric}; found {body.get('metric')!r}")
    folder = path.parent / "checkpoint"
    for name, wanted in listed.items():
        if not (folder / name).is_file() or _sha256(folder / name) != wanted:
            raise BadInput(
                f"the checkpoint {name} must be the one that VP L1 recorded; it is missing or differs",
                "`handoff --run-vp` records a new one",
            )
    return Evidence(value, listed, folder)


def write_evidence(evidence: Evidence, metric: str, folder: Path) -> Path:
    """Record VP L1 so that a later handoff need not run it again."""
    body = {"metric": metric, "value": evidence.value, "checkpoint": dict(evidence.checkpoint)}
    path = folder / "vp-l1.json"
    _write(path, json.dumps(body, indent=2, sort_keys=True) + "\n")
    return path


def script_of(command: str, folder: Path) -> str | None:
    """The file of the experiment that a command runs, relative to it; None where that cannot be told."""
    if re.search(r"[|;&<>`$]", command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    for at, word in enumerate(words):
        if word == "-m" and at + 1 < len(words):
            module = Path(*words[at + 1].split("."))
            for one in (module.with_suffix(".py"), module / "__main__.py"):
                if (folder / one).is_file():
                    return one.as_posix()
        path = Path(word)
        if not path.is_absolute() and ".." not in path.parts and (folder / path).is_file():
            return path.as_posix()
    return None


def _last(ran: Ran) -> str:
    return commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Give a file this text, unless it has it already."""
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        path.write_text(text, encoding="utf-8")
