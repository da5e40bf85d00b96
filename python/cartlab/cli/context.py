"""What a subcommand works with: the repository, the root, the flags everybody has, a voice, and the
laboratory.

Everything is found when it is first asked for, so that a cheap command pays for nothing it does not use.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cartlab.cli.options import Common, common
from cartlab.cli.talk import Talk
from cartlab.outcome import Outcome, Report
from cartlab.root import Root, find_repository, has_state, resolve_root

if TYPE_CHECKING:
    from cartlab.pipeline.lab import Lab


@dataclass
class Context:
    """One command's surroundings; tests put their own laboratory in."""

    command: str
    phase: str
    program: str
    talk: Talk
    common: Common = field(default_factory=Common)
    cwd: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    fallback: Path | None = None
    lab_override: Lab | None = None
    about: Path | None = None  # a folder that says by where it lies which repository is meant
    any_repository: bool = False  # the command works on whatever repository is around us, as the loops do

    @classmethod
    def open(
        cls,
        space: argparse.Namespace,
        talk: Talk,
        *,
        program: str,
        command: str,
        phase: str,
        fallback: Path | None = None,
        any_repository: bool = False,
    ) -> Context:
        made = cls(command, phase, program, talk, common(space), fallback=fallback)
        made.any_repository = any_repository
        return made

    @cached_property
    def repo(self) -> Path:
        if self.about is not None:
            return find_repository(self.about)
        # Where a loop was opened, `status` and its like speak of that repository too.
        return find_repository(
            self.cwd, self.fallback, lambda top: self.any_repository or has_state(top, self.environ)
        )

    @cached_property
    def root(self) -> Root:
        found = resolve_root(self.repo, self.common.root, self.environ)
        if found.source == "default state folder":
            self.talk.warn(
                f"root: {found.path} (default; AUTORESEARCH_ROOT_PATH or --autoresearch-root moves it)"
            )
        return found

    @cached_property
    def lab(self) -> Lab:
        if self.lab_override is not None:
            return self.lab_override
        from cartlab.pipeline.lab import Lab

        return Lab.real()

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Around what may end a run or change a round: the user's `notify` command is told of it afterwards,
        also where it ended in an error.
        """
        from cartlab.ledger.store import written

        before = len(written)
        try:
            yield
        finally:
            if len(written) > before:
                from cartlab.pipeline import notices

                config = self.lab.load_config(self.repo)
                numbers = [number for number, _ in written[before:]]
                notices.tell(config.notify, self.repo, self.root.path, numbers, self.talk)

    def line(self, words: str) -> str:
        """A command line that can be typed as it stands."""
        return f"scripts/autoresearch.py {words}"

    def answer(self) -> Outcome:
        """An empty answer of this command, to be filled in."""
        return Outcome(command=self.command, report=Report(phase=self.phase, next=self.line("next")))
