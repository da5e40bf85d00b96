"""The six steps of a round as the supervisor's task list says them, the prompt, and the progress lines.

The strings are those of the supervisor's document, byte for byte: people and agents that follow it match on
them. All of it is text made from values.
"""

from __future__ import annotations

from collections.abc import Sequence

from cartlab.loops.experiences import Row, table
from cartlab.loops.protocol import Protocol

RECENT = 5
WORDS = {"higher": "maximize", "lower": "minimize"}
SKIPPED_PROFILE = "perf mode but no profile artifacts found — Researcher skipped discipline"
READY = "Code ready"


def created(protocol: Protocol, number: int, best: str) -> list[str]:
    """The task list of a round before anything is dispatched."""
    files = ", ".join(protocol.variable)
    kernels = len(protocol.kernel_targets)
    compliance = f"files + parity ({kernels} kernels)" if kernels else f"check {files} only"
    r = f"R{number}"
    return [
        f"{r} S1: Researcher — improve {protocol.metric} on {files}",
        f"{r} S2: Compliance — {compliance}",
        f"{r} S3: Train — {protocol.train_command} (limit: {protocol.time_limit})",
        f"{r} S4: Eval — {protocol.eval_command} (current best: {best})",
        f"{r} S5: Git — awaiting result",
        f"{r} S6: Termination — {number}/{protocol.max_rounds}",
    ]


def researched(number: int, strategy: str) -> str:
    """S1 when it is done."""
    return f"R{number} S1: Researcher — {strategy}"


def complied(number: int, finding: str = "✅") -> str:
    """S2 when it is done; finding: ✅, or what touched_files or parity_broken say."""
    return f"R{number} S2: Compliance — {finding}"


def touched_files(file: str) -> str:
    """The finding that a fixed file was touched."""
    return f"❌ files: touched {file}"


def parity_broken(name: str, kind: str, detail: str) -> str:
    """The finding that a kernel does not agree with its baseline."""
    return f"❌ parity({name}): {kind} {detail}"


def trained(number: int, seconds: float, loss: str) -> str:
    """S3 when it is done."""
    return f"R{number} S3: Train — done {seconds:.1f}s, final loss={loss}"


def evaluated(protocol: Protocol, number: int, value: str, best: str, better: bool) -> str:
    """S4 when it is done. best: after this round."""
    return f"R{number} S4: Eval — {protocol.metric}={value} (best: {best} {'↑' if better else '—'})"


def acted(number: int, committed: bool) -> str:
    """S5 when it is done."""
    return f"R{number} S5: Git — {'committed' if committed else 'rolled back'}"


def terminated(number: int, reason: str | None) -> str:
    """S6 when it is done; reason: None where the loop goes on."""
    return f"R{number} S6: Termination — {'continue' if reason is None else f'done: {reason}'}"


def announce(protocol: Protocol, number: int) -> str:
    """The line that opens a run."""
    return (
        f"Starting autoresearch: {protocol.research_question}. Round {number}/{protocol.max_rounds}. "
        f"Baseline: {protocol.metric} = {protocol.baseline}."
    )


def progress(
    protocol: Protocol, number: int, value: str, verdict: str, best: str, best_round: int
) -> list[str]:
    """The two lines that close a round."""
    return [
        f"Round {number}/{protocol.max_rounds}: {protocol.metric}={value} — {verdict}",
        f"  Best so far: {protocol.metric}={best} (Round {best_round})",
    ]


def commit_message(protocol: Protocol, number: int, value: str) -> str:
    """The message of an accepted round's commit."""
    return f"autoresearch: round {number} — {protocol.metric}={value} (improved)"


def prompt(
    protocol: Protocol, number: int, rows: Sequence[Row], experiences: str, recent: int = RECENT
) -> str:
    """What the researcher is told. It holds no file's content: the researcher reads files itself.

    experiences: the path of experiences.md as the researcher sees it.
    """
    profile = protocol.profile_command
    parts = [
        f"You are an ML researcher. Your task is to improve {protocol.metric} ({WORDS[protocol.direction]}).",
        f"This is Round {number} of {protocol.max_rounds}.",
        "",
    ]
    if profile:
        parts += [
            "## Profile-first discipline",
            "Before designing any strategy, you MUST:",
            f"1. Run `{profile}` and capture stdout.",
            f"2. Save raw profile to `profiles/round-{number}-before.md`.",
            "3. Identify the top hotspot ops/kernels. Save your analysis to",
            f"   `profiles/round-{number}-analysis.md` (2-3 sentences: which op",
            "   dominates, by how much, what you suspect).",
            "4. The Strategy you append to experiences.md MUST cite a specific",
            "   hotspot from the analysis. Skipping profile artifacts will be",
            "   flagged by Supervisor and visible to next round's Researcher.",
            "",
            "\"It's obvious what's slow\" is exactly the blind guessing this",
            "discipline prevents.",
            "",
        ]
    parts += [
        "## Your role",
        "You design the strategy and write the code. Training and evaluation are handled by Supervisor after "
        "you finish — you don't need to run them. You may run quick smoke tests to verify your code works.",
        "",
        "## Constraints",
        f"- **Fixed files (do not modify):** {', '.join(protocol.fixed)}",
        f"- **Variable files (you may modify):** {', '.join(protocol.variable)}",
        f"- **Variable range:** {protocol.variable_range}",
        "- You may create new helper files if needed."
        if not protocol.strict_variable
        else "- You may not create new files: this protocol is strict about its variable files.",
        "- **Do NOT create or modify any evaluation logic.** Evaluation is a pre-defined script managed by "
        "Supervisor. Do not write alternative eval scripts, metric computation code, or accuracy calculation "
        "utilities — even in new files.",
        "",
        f"## Recent experiences (last {recent} rounds)",
        *table(tuple(rows[-recent:] if recent else ())),
        "",
        "## Your task",
    ]
    task = [
        "Read the variable files listed above to understand current code",
        f"Based on experiences{' and profile analysis' if profile else ''}, design a strategy for this round",
        f"Add a row to {experiences} with your strategy (leave Result/Verdict/Insight blank)",
        "Modify the variable files to implement your strategy",
        f'Report "{READY}" as your final message',
    ]
    if profile:
        task.insert(0, f"Run `{profile}`, save profile + analysis (see Profile-first discipline above).")
    parts += [f"{at}. {text}" for at, text in enumerate(task, 1)]
    return "\n".join(parts) + "\n"
