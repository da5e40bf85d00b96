#!/usr/bin/env python3
"""The scripted researcher of the engine's campaign: makes the edits that edits.json lists for a hypothesis.

    researcher.py CACHE

Run by `campaign run` in a copy of the tree. An edit whose text is not there exactly as often as expected is
not made, and nothing else either: the copy comes back as it was, which the harness calls failed. The change
is built into the cache, which takes longer than an evaluation may; the evaluation finds it by its sources.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    idea = json.loads(Path(os.environ["AR_HYPOTHESIS"]).read_text())
    work, submission = Path(os.environ["AR_WORK"]), Path(os.environ["AR_SUBMISSION"])
    edits = json.loads((HERE / "edits.json").read_text())[idea["id"]]
    after = {}
    for edit in edits:
        path = work / edit["file"]
        text = after.get(path) or path.read_text()
        if text.count(edit["old"]) != edit["times"]:
            found = f"{edit['file']} holds the old text {text.count(edit['old'])} times, not {edit['times']}"
            submission.write_text(json.dumps({"strategy": f"not made: {found}"}))
            return
        after[path] = text.replace(edit["old"], edit["new"])
    for path, text in after.items():
        path.write_text(text)
    measure = [sys.executable, str(work / "scripts/campaigns/engine/measure.py"), "--build-only"]
    subprocess.run([*measure, "--cache", sys.argv[1]], cwd=work, check=True)
    submission.write_text(json.dumps({"strategy": idea["change"]}))


if __name__ == "__main__":
    main()
