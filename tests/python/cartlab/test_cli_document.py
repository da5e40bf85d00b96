"""The speed document's command list, typed as it stands there, in its order."""

from __future__ import annotations

import re
from pathlib import Path

from cli_bench import make_bench

# The document's own lines; <...> is filled in, [...] is typed both with and without.
LINES = """\
init
status
next
probe [--dry-run]
diagnose [--quick] [--profile] [--dry-run]
screen <baseline_ref> <candidate_ref> [--dry-run] [--no-record] [-- <extra runner args>]
checks [--quick] [--dry-run] [--surface auto|native|python|benchmark]
accept-stack <baseline_ref> <candidate_ref> [--dry-run] [--no-record] [-- <extra runner args>]
accept <baseline_ref> <candidate_ref> [--full] [--dry-run] [--no-record] [-- <extra runner args>]
calibrate <ref> [--full] [--dry-run] [--no-record] [-- <extra runner args>]
record <aggregate.json> [--status <status>] [--description "..."] [--artifact <path>]
"""

SURFACES = """
[surfaces.python]
paths = ["*.py"]
quick = ["true"]
full = ["true"]

[surfaces.benchmark]
paths = ["bench/**"]
quick = ["true"]
full = ["true"]

[protected]"""


def forms(line: str, filled: dict[str, str]) -> list[list[str]]:
    """The line without its options, and with all of them; one form a surface."""
    for name, value in filled.items():
        line = line.replace(name, value)
    bare = re.sub(r" \[[^\]]*\]", "", line)
    full = line.replace("[", "").replace("]", "")
    choices = re.search(r"\S+(?:\|\S+)+", full)
    words = choices.group(0).split("|") if choices else [""]
    full_forms = [full.replace(choices.group(0), word) if choices else full for word in words]
    return [bare.split(), *(form.split() for form in full_forms)]


def test_every_line_of_the_document_is_accepted_as_typed(tmp_path: Path) -> None:
    from fake_project import CONFIG

    bench = make_bench(tmp_path, CONFIG.replace("\n[protected]", SURFACES))
    bench.project.commit("faster", work=50)
    top = bench.project.path
    bench.project.write(".gitignore", "libengine.so\n")
    import subprocess

    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", "libengine.so", "engine.c"], cwd=top, check=True)
    filled = {
        "<baseline_ref>": "HEAD~1",
        "<candidate_ref>": "HEAD",
        "<ref>": "HEAD",
        "<extra runner args>": "--max-blocks 2 --max-wall-clock-minutes 5",
        "<status>": "triage_promote",
        '"..."': "words",
        "<path>": "elsewhere",
    }
    ran = 0
    for line in LINES.splitlines():
        if line.startswith("record"):
            made = next(iter(sorted(bench.root.glob("benchmarks/runs/*-screen-*/aggregate.json"))))
            filled["<aggregate.json>"] = str(made)
        for words in forms(line, filled):
            answer = bench.run(*words)
            assert answer.code in (0, 11), (words, answer.code, answer.out, answer.err)
            assert list(answer.report) == ["phase", "inputs", "outputs", "decision", "next"], words
            ran += 1
    assert ran == 25
