"""A small experiment with a campaign over it: its folder, the documents that planning needs, its commands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import small_experiment
from campaign_events import hypothesis
from small_experiment import Experiment

from cartlab.ledger import Ledger
from cartlab.loops.campaign import records
from cartlab.loops.campaign.records import Campaign

SLUG = "slope"
DOCUMENTS = {
    "TASK.md": "# Task\n\nFind the slope with fewer steps.\n",
    "PREVIOUS_WORK.md": "\n".join(
        [
            "## Current baseline",
            "- error: 2.45 (source: eval.py)",
            "## What was tried and kept",
            "- none",
            "## What was tried and dropped",
            "- momentum: unstable (commit def456, reverted)",
            "## Open hypotheses / TODOs in the code",
            "- a larger rate (train.py:4)",
            "## Known fragile areas",
            "- none",
        ]
    ),
    "DEEPRESEARCH.md": "# Survey\n"
    "- rates up to 1 are stable https://example.org/rates\n- steps (train.py:9)\n",
    "IDEA_ANGLES.md": "## A: optimisation\n- a larger rate\n## G: transplant\n- none\n",
}


@dataclass
class Lab:
    """The experiment and the campaign's folder."""

    experiment: Experiment
    folder: Path

    def cartlab(self, *words: str) -> int:
        """One command line; its exit code."""
        return self.experiment.cartlab(*words)

    def init(self, *words: str) -> int:
        """Open the campaign over the experiment's protocol."""
        return self.cartlab("campaign", "init", SLUG, "--protocol", str(self.experiment.folder), *words)

    def write(self, name: str, body: Any) -> Path:
        """A file beside the clone: text, or JSON of anything else."""
        path = self.experiment.root.parent / name
        path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
        return path

    def documents(self, **changes: str) -> None:
        """Write the documents that planning needs; `NAME=text` replaces one (without its `.md`)."""
        for name, text in {**DOCUMENTS, **{f"{key}.md": text for key, text in changes.items()}}.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def events(self) -> list[dict[str, Any]]:
        """The ledger."""
        return list(Ledger.open(self.experiment.root, mend=False).events())

    def campaign(self) -> Campaign:
        """The campaign as the ledger tells it."""
        return records.newest(self.events())


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A bare experiment (no training; the metric is config.json's rate), the runs' folder set."""
    experiment = small_experiment.make_bare(tmp_path)
    monkeypatch.chdir(experiment.repo)
    monkeypatch.setenv("AUTORESEARCH_RUNS_DIR", str(tmp_path / "runs"))
    return Lab(experiment, tmp_path / "runs" / SLUG)


def matrix(letters: str = "ABCDEFK", **changes: Any) -> list[dict[str, Any]]:
    """One hypothesis a letter."""
    return [hypothesis(f"h{n}", letter, **changes) for n, letter in enumerate(letters, 1)]
