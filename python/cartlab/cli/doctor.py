"""`doctor`: what this machine does to measurements, and what can be done about it. Changes and records
nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    pass


def declare(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def translate(space: argparse.Namespace) -> Request:
    return Request()


def run(context: Context, request: Request) -> Outcome:
    from cartlab import advice, host

    found = advice.report()
    out = context.answer()
    out.report.inputs = [f"host class {host.host_class()}"]
    out.report.next = context.line("next")
    out.details = {"host": dict(host.facts()), "findings": [finding.to_json() for finding in found]}
    width = max(len(finding.name) for finding in found)
    for finding in found:
        out.text.append(f"{finding.level:4}  {finding.name:{width}}  {finding.found}")
        if finding.advice:
            out.text.append(f"{'':4}  {'':{width}}  -> {finding.advice}")
    return out
