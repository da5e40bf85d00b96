"""One command as all the hands of a campaign: it proposes, criticises, searches and names methods.

The command is told by AR_ROLE what it is asked: `experiment`, `propose`, `critique`, `search` or `method`.
What it answers is text and is checked where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cartlab.loops import commands
from cartlab.loops.campaign import (
    asking,
    critique,
    documents,
    experiment,
    ladder,
    planning,
    proposers,
    verdicts,
)
from cartlab.loops.campaign.asking import Question
from cartlab.loops.campaign.driver import Hands
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk

_PROGRAM_CAP = 20_000


def of_command(command: str, limit_s: float) -> Hands:
    """The hands of a shell line. limit_s: the deadline of each of its runs, seconds."""

    def propose(desk: Desk) -> None:
        campaign = planning.complete(desk)
        last = campaign.generation
        if last is None or last.closed:
            rung = ladder.position(campaign).rung
            options = proposers.Options(limit_s=limit_s)
            campaign = planning.plan(desk, command=command, rung=rung, options=options)
            last = campaign.generation
        if last is not None and not (last.closed or last.seed or last.critiqued):
            critique.critique(desk, command=command, limit_s=limit_s)

    def search(desk: Desk) -> str:
        body = _asked(desk, "search", search_prompt, command, limit_s)
        sources = body.get("sources", ())
        found = [sources] if isinstance(sources, str) else sources if isinstance(sources, list) else []
        return commands.plain(", ".join(str(one) for one in found[:10]), 1000)

    def method(desk: Desk) -> tuple[str, str, str] | None:
        body = _asked(desk, "method", method_prompt, command, limit_s)
        title = commands.plain(str(body.get("title") or ""), 200).strip()
        program = str(body.get("program") or "")[:_PROGRAM_CAP].strip()
        known = {lever.title.casefold() for lever in verdicts.campaign_of(desk).levers}
        if not title or not program or title.casefold() in known:
            return None
        return title, program, commands.plain(str(body.get("source") or ""), 300)

    return Hands(documents.render, propose, search, method)


def by_hand() -> Hands:
    """Nobody to ask: what is queued is run, and then the campaign waits for people."""
    return Hands(documents.render)


def _asked(desk: Desk, role: str, prompt: object, command: str, limit_s: float) -> Mapping[str, object]:
    campaign = verdicts.campaign_of(desk)
    assert callable(prompt)
    number = len(campaign.levers) + len(campaign.searches) + 1
    question = Question(f"l{number}-{role}", role, prompt(campaign), {"AR_RUNG": str(ladder.TOP)})
    answer = asking.ask(desk, campaign, command, [question], limit_s)[0]
    if answer.problem:
        desk.voice.warn(answer.problem)
    return answer.body if isinstance(answer.body, dict) else {}


def search_prompt(campaign: Campaign) -> str:
    """What is asked before another method may be named."""
    champion = campaign.champion
    what = champion.hypothesis.change if champion is not None else "the baseline"
    return "\n".join(
        [
            f"# Look for other people's methods, for campaign {campaign.slug}",
            "",
            f"Small changes do not help any more. Metric: {campaign.metric}, {campaign.direction} is better; "
            f"the best so far is {what} with {experiment.best_of(campaign).text}.",
            "Search code and papers for a method that replaces it. Add what you find to "
            f"{campaign.folder}/DEEPRESEARCH.md, and write the submission file (AR_SUBMISSION) as JSON:",
            json.dumps({"sources": ["URL of what was searched and found"]}),
            "",
        ]
    )


def method_prompt(campaign: Campaign) -> str:
    """What is asked for on the top rung."""
    tried = [f"- {lever.title}" for lever in campaign.levers if lever.title] or ["- none"]
    return "\n".join(
        [
            f"# Name another method, for campaign {campaign.slug}",
            "",
            f"Metric: {campaign.metric}, {campaign.direction} is better. The method has to be another "
            "algorithm, not another setting; the experiments that follow search within it.",
            "",
            "## Methods so far",
            *tried,
            "",
            "## What was searched",
            *[f"- {source}" for source in campaign.searches[-5:]],
            "",
            "Write the submission file (AR_SUBMISSION) as JSON, or {} where there is no new one:",
            json.dumps(
                {"title": "one line", "program": "what to build and how to search in it", "source": "URL"}
            ),
            "",
        ]
    )
