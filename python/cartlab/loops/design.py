"""A design document's section `## Autoresearch Protocol`: a protocol without its baseline yet, and the keys
that only the handoff reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cartlab.errors import BadInput
from cartlab.loops.protocol import Protocol, is_finite, of_sections, plain_command, read_sections

DESIGN_HEADING = "## Autoresearch Protocol"
# A key of the design document's section -> section and key of the protocol.
_DESIGN = {
    "fixed files": ("Fixed", "files"),
    "fixed.files": ("Fixed", "files"),
    "time_limit": ("Fixed", "time_limit"),
    "epoch_limit": ("Fixed", "epoch_limit"),
    "variable files": ("Variable", "files"),
    "variable.files": ("Variable", "files"),
    "variable range": ("Variable", "adjustable range"),
    "range": ("Variable", "adjustable range"),
    "可调范围": ("Variable", "adjustable range"),
    "diff_cap": ("Variable", "diff_cap"),
    "metric": ("Eval", "metric"),
    "direction": ("Eval", "direction"),
    "eval_command": ("Eval", "command"),
    "eval_tolerance": ("Eval", "eval_tolerance"),
    "profile_command": ("Profile", "command"),
    "train_command": ("Train", "command"),
    "checkpoint": ("Train", "checkpoint"),
    "env_repair": ("Train", "env_repair"),
    "witness_seconds": ("Witnesses", "seconds"),
    "witness_work": ("Witnesses", "work"),
    "min_time_share": ("Witnesses", "min_time_share"),
    "checks_command": ("Witnesses", "checks"),
    "check_files": ("Witnesses", "check_files"),
    "bounds": ("Witnesses", "bounds"),
    "jump": ("Witnesses", "jump"),
    "floor": ("Witnesses", "floor"),
    "nonce": ("Witnesses", "nonce"),
}


@dataclass(frozen=True)
class Design:
    """A design document's protocol section. gates: the keys that only the handoff reads, as text."""

    protocol: Protocol
    gates: Mapping[str, str]


GATE_KEYS = ("first_step_max_s", "first_step_command", "base_code")


def parse_design(text: str) -> Design:
    """The section of a design document, its baseline still empty; BadInput names what is missing.

    Fields stand as `key: value` lines, flat (`fixed files: ...`) or below `### Fixed`, `### Variable`,
    `### Eval`, `### Train` and `### Profile`.
    """
    lines = text.splitlines()
    at = next((n for n, line in enumerate(lines) if line.strip() == DESIGN_HEADING), None)
    if at is None:
        raise BadInput(
            f"the design document must have the heading `{DESIGN_HEADING}`; it has none",
            "add the section with the goal's metric, files, limits and commands",
        )
    end = next((n for n in range(at + 1, len(lines)) if re.match(r"#{1,2}\s", lines[n])), len(lines))
    read = read_sections("\n".join(lines[at + 1 : end]))
    head = next((line for line in lines if re.match(r"#\s", line)), "# untitled")
    read.title = read.values.pop(("", "title"), "") or re.sub(r"#\s+(Design:\s*)?", "", head).strip()
    gates = {}
    for section, key in list(read.values):
        if key in GATE_KEYS:
            gates[key] = plain_command(read.values.pop((section, key)))
            read.order[section].remove(key)
        elif section == "" and key in _DESIGN:
            place = _DESIGN[key]
            read.values[place] = read.values.pop((section, key))
            read.order[section].remove(key)
            read.order.setdefault(place[0], []).append(place[1])
    if "first_step_max_s" not in gates or not is_finite(gates["first_step_max_s"]):
        raise BadInput(
            "the design document must set first_step_max_s, the seconds within which the first line of "
            f"output must come; found {gates.get('first_step_max_s', 'nothing')!r}",
            "add `first_step_max_s: 30` to its protocol section",
        )
    return Design(of_sections(read, ""), gates)
