"""autoresearch.sh and autoresearch.checks.sh as `init` writes them from its answers. Pure.

Both are meant to be read and changed before a session; what a session measures with is pinned in its ledger.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from cartlab.loops import manifest

QUICK_S = 5  # a first run under this is repeated
RUNS = 5
MAX_CHECKED = 40
_HEAD = "#!/bin/bash\nset -euo pipefail\nexport LC_ALL=C\n"


def benchmark(metric: str, command: str, measure: str, checked: Sequence[str], nonce: bool = False) -> str:
    """The measuring script: a pre-check of the syntax, the command, METRIC lines, and the median where the
    first run takes under five seconds.

    measure: "output" reads `METRIC name=`, `name=` or `name:` from what the command prints; "time" takes its
    wall time in seconds. checked: Python and shell files whose syntax is looked at first. nonce: METRIC lines
    carry AR_NONCE, and of the command's output only those that do are read; a command that is timed never
    sees it.
    """
    mark = "[$AR_NONCE]" if nonce else ""
    hide = "env -u AR_NONCE " if nonce and measure == "time" else ""
    # In a shell of its own: strict mode does not reach into a command whose failure is looked at.
    strict = f"{hide}bash -euo pipefail -c {shlex.quote(command)}"
    name = re.escape(metric).replace("/", r"\/")
    parts = [_HEAD, _precheck(checked)]
    if measure == "time":
        parts.append(
            "# One run: its wall time in seconds.\n"
            "once() {\n"
            "  local TIMEFORMAT=%R took\n"
            f"  took=$( {{ time {strict} >out.log 2>&1; }} 2>&1 ) ||\n"
            "    { tail -20 out.log >&2; exit 1; }\n"
            '  value=$(printf "%s\\n" "$took" | tail -1)\n'
            "  output=$(cat out.log); rm -f out.log\n"
            "}\n"
        )
    else:
        label, number = f"(METRIC )?[[:space:]]*{name}[[:space:]]*[=:][[:space:]]*", "\\2"
        if nonce:
            label, number = f"METRIC\\['\"$AR_NONCE\"'\\] {name}=", "\\1"
        parts.append(
            f"# One run: the last number that the command prints for {metric}.\n"
            "once() {\n"
            f"  output=$( {strict} 2>&1 ) ||\n"
            "    { printf '%s\\n' \"$output\" | tail -20 >&2; exit 1; }\n"
            "  value=$(printf '%s\\n' \"$output\" |\n"
            f"    sed -nE 's/^{label}([-+]?[0-9.]+([eE][-+]?[0-9]+)?).*$/{number}/p' | tail -1)\n"
            f'  [ -n "$value" ] || {{ echo "the command printed no {metric}" >&2; exit 1; }}\n'
            "}\n"
        )
    secondary = f"grep '^METRIC ' | grep -v '^METRIC {name}='"
    if nonce:
        secondary = f'grep -F "METRIC{mark} " | grep -vF "METRIC{mark} {metric}="'
    parts.append(
        f"# A quick run says little alone: up to {RUNS} of them, and their median.\n"
        "SECONDS=0\n"
        "once\n"
        'values="$value"\n'
        f"if [ $SECONDS -lt {QUICK_S} ]; then\n"
        f"  for _ in {' '.join(str(n) for n in range(2, RUNS + 1))}; do\n"
        "    once\n"
        '    values="$values $value"\n'
        "  done\n"
        "fi\n"
        "median=$(printf '%s\\n' $values | sort -g |\n"
        "  awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')\n"
        f'echo "METRIC{mark} {metric}=$median"\n'
        "# Further METRIC lines of the command are secondary metrics.\n"
        f"printf '%s\\n' \"$output\" | {secondary} || true\n"
    )
    return "\n".join(parts)


def _precheck(checked: Sequence[str]) -> str:
    python = [shlex.quote(path) for path in checked if path.endswith(".py")]
    shell = [shlex.quote(path) for path in checked if path.endswith(".sh")]
    lines = ["# What cannot even be parsed is not run."]
    if python:
        lines.append(
            "python3 -c 'import ast, sys; [ast.parse(open(p).read(), p) for p in sys.argv[1:]]' \\\n"
            f"  {' '.join(python)} || {{ echo 'SYNTAX ERROR' >&2; exit 1; }}"
        )
    lines += [f"bash -n {path} || {{ echo 'SYNTAX ERROR' >&2; exit 1; }}" for path in shell]
    if len(lines) == 1:
        lines.append("# (No Python or shell file is in scope: add a check of under a second here.)")
    return "\n".join(lines) + "\n"


def checks(command: str) -> str:
    """The script of checks that a keep has to pass."""
    return f"{_HEAD}\n# Ends with another code than 0 where the change broke something.\n{command}\n"


def checkable(paths: Iterable[str], scope: Sequence[str], command: str) -> list[str]:
    """The files whose syntax the pre-check looks at: those in scope, else those that the command names."""
    known = [path for path in paths if path.endswith((".py", ".sh"))]
    if scope:
        found = [path for path in known if manifest.named(path, scope)]
    else:
        words = set(re.split(r"[\s;|&<>()]+", command))
        found = [path for path in known if path in words or f"./{path}" in words]
    return found[:MAX_CHECKED]
