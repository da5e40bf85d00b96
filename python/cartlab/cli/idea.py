"""`idea TEXT`: append an idea to ideas.md, stamped; what people wrote there stays as it is."""

from __future__ import annotations

from cartlab.cli import texts
from cartlab.cli.context import Context
from cartlab.outcome import Outcome

declare = texts.declare
translate = texts.translate


def run(context: Context, request: texts.Request) -> Outcome:
    return texts.append(context, request, "ideas.md", "idea")
