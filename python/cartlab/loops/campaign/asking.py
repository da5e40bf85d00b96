"""Asking a command for ideas or opinions: proposers and critics, each in a fresh process with a prompt.

It is the researcher's command or another one, told apart by AR_ROLE. It gets a copy of the champion's tree
without `.git`, may read the campaign's folder, and answers with JSON in the submission file. What it says is
text: it is checked by who asked, and nothing of it is a number of a measurement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import Tampered
from cartlab.loops import approvals, commands, trees
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import ENVIRONMENT, top_of
from cartlab.loops.worktree import repository_state

LIMIT_S = 1800.0
ANSWER_CAP = 1 << 20


@dataclass(frozen=True)
class Question:
    """One run of the command. name: of its files; role: "propose" | "critique"; more: further variables."""

    name: str
    role: str
    prompt: str
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The submission's JSON, or why there is none."""

    question: Question
    body: Any
    problem: str = ""


def ask(
    desk: Desk, campaign: Campaign, command: str, questions: Sequence[Question], limit_s: float = LIMIT_S
) -> list[Answer]:
    """All questions at once, the answers in their order. Tampered where the repository changed meanwhile."""
    approvals.require(command, desk.options.approve)
    before = repository_state(desk.repo)
    found = commands.at_once(lambda one: _ask(desk, campaign, command, one, limit_s), questions)
    after = repository_state(desk.repo)
    moved = [name for name in before if before[name] != after[name]]
    if moved and desk.options.isolation != "landlock":
        raise Tampered(
            f"no proposer or critic may write in the repository; its {', '.join(moved)} changed meanwhile",
            "the answers were not used; look at what the command does",
        )
    return found


def _ask(desk: Desk, campaign: Campaign, command: str, question: Question, limit_s: float) -> Answer:
    name = f"{campaign.goal.id}-{question.name}"
    desk.clear(name)
    own, logs = desk.work_folder(name), desk.run_folder(name)
    trees.lay(desk.repo, campaign.goal.accepted, own / "work")
    work, inbox, temporary = own / "work" / top_of(campaign.goal), own / "inbox", own / "tmp"
    for folder in (work, inbox, temporary, logs):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (inbox, logs):
        (folder / "prompt.md").write_text(question.prompt, encoding="utf-8")
    places = {"prompt": inbox / "prompt.md", "submission": inbox / "submission.json", "work": work}
    env = commands.researcher_environment(
        {
            **{ENVIRONMENT[key]: str(path) for key, path in places.items()},
            "AR_ROLE": question.role,
            "AR_CAMPAIGN": campaign.folder,
            "TMPDIR": str(temporary),
            **question.more,
        }
    )
    desk.voice.progress(f"{question.name}: the command works (at most {limit_s:g} s)")
    ran = commands.run(
        desk.wrap(commands.fill(command, **places), own / "work", inbox, temporary, *desk.options.writable),
        cwd=work,
        env=env,
        limit_s=limit_s,
        folder=logs,
        name=question.role,
    )
    desk.ledger.append(
        "measurement",
        None,
        {
            "goal": desk.goal_id,
            "role": question.role,
            "name": question.name,
            "seconds": ran.seconds,
            "returncode": ran.returncode,
            "isolation": desk.options.isolation,
        },
    )
    answer = _read(question, ran.returncode, ran.complaint, places["submission"], limit_s)
    desk.clear(name)
    return answer


def _read(question: Question, returncode: int | None, complaint: str, path: Path, limit_s: float) -> Answer:
    if returncode is None:
        return Answer(question, None, f"{question.name}: no end within {limit_s:g} s")
    if returncode != 0:
        words = commands.plain((complaint.splitlines() or ["no output"])[-1], 300)
        return Answer(question, None, f"{question.name}: exit code {returncode}: {words}")
    # A pipe or a link in its place would make us wait, or read elsewhere.
    if path.is_symlink() or not path.is_file():
        return Answer(question, None, f"{question.name}: it wrote no submission file")
    try:
        if path.stat().st_size > ANSWER_CAP:
            raise ValueError(f"it has more than {ANSWER_CAP} bytes")
        return Answer(question, json.loads(path.read_bytes()))
    except (ValueError, RecursionError) as error:
        return Answer(question, None, f"{question.name}: the submission must be JSON; {error}")
