"""Every way in which cartlab refuses or fails, one class an exit code.

The codes are those of docs/benchmarking.md. A message says what was expected and what was found; the hint
says what to try. Libraries raise these, only the command line turns one into text and an exit code. Nothing
here prints or exits.

To add an error: write the class below, give it its code and the status word it is recorded under ("refused"
where nothing was measured and nothing is to be recorded).
"""

from __future__ import annotations

from typing import Any, ClassVar


class CartlabError(Exception):
    """Base of all errors that cartlab raises on purpose.

    message: what was expected and what was found, one line.
    hint: what to try, one line; empty where there is nothing to try.
    exit_code: what the process ends with; the class's own code unless one is given.
    details: further facts for `--json` (a log's tail, a file's name), JSON values only.
    """

    code: ClassVar[int] = 1
    status: ClassVar[str] = "refused"

    def __init__(
        self,
        message: str,
        hint: str = "",
        exit_code: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = self.code if exit_code is None else exit_code
        self.details: dict[str, Any] = details or {}

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(CartlabError):
    """Arguments that do not fit together."""

    code = 2


class BehaviourChanged(CartlabError):
    """The two sides did not do the same work: no ranking."""

    code = 12
    status = "behaviour_changed"


class BuildFailed(CartlabError):
    """A ref does not build; details["log_tail"] holds the end of the log."""

    code = 14
    status = "build_failed"


class WorkerCrashed(CartlabError):
    """A worker process ended or spoke nonsense before its work was done."""

    code = 15
    status = "crashed"


class WorkerTimeout(CartlabError):
    """A worker did not answer within its phase's limit and was killed."""

    code = 15
    status = "timeout"


class Tampered(CartlabError):
    """Clocks or digests that cannot come from an honest run."""

    code = 16
    status = "tampered"


class ChecksFailed(CartlabError):
    """The candidate's checks fail where the baseline's pass."""

    code = 17
    status = "checks_failed"


class ComplianceFailed(CartlabError):
    """The candidate touches protected paths."""

    code = 18
    status = "compliance_failed"


class MetricError(CartlabError):
    """The workload gave no usable number."""

    code = 19
    status = "metric_error"


class BadRef(CartlabError):
    """No such commit, branch, tag or range."""

    code = 20


class BadRoot(CartlabError):
    """The state root lies inside the repository, or cannot be written."""

    code = 21


class DamagedLedger(CartlabError):
    """events.jsonl is damaged elsewhere than in a torn last line; the message names the line."""

    code = 22


class NotLegalNow(CartlabError):
    """The open round does not allow this action at this time."""

    code = 23


class LeaseTimeout(CartlabError):
    """Another controller measured on this machine for longer than we agreed to wait."""

    code = 24


class BadInput(CartlabError):
    """A bad ROM, board, state or configuration file."""

    code = 25


class Interrupted(CartlabError):
    """The user stopped the run; what was measured is on disk."""

    code = 130
    status = "interrupted"
