"""The subcommands in the order of work: one row each, and nothing imported until a row is chosen.

A name of two words is one of a family (`campaign plan`) whose members have flags of their own.

To add one: (1) write a module with `declare(parser)`, `translate(namespace)` and `run(context, request)`;
(2) add its row here, where it belongs in the order of work; (3) give it an example line.
`test_cli_table.py` fails when a row has no module, or a module no row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """name as typed; module under cartlab.cli; phase of its report; what it is for; example command lines;
    any_repository: it works on the git repository around the caller, whether or not that has an
    autoresearch.toml.
    """

    name: str
    module: str
    phase: str
    summary: str
    examples: tuple[str, ...]
    any_repository: bool = False


ROWS: tuple[Row, ...] = (
    Row(
        "init",
        "init",
        "orient",
        "make the root's files where they are missing; never changes one that is there",
        ("init", "init --autoresearch-root ~/cart-state"),
    ),
    Row(
        "status",
        "status",
        "orient",
        "where things stand: root, branch, round, latest results, calibration, notes, next action",
        ("status", "status --limit 20 --rejects"),
    ),
    Row(
        "next",
        "next",
        "orient",
        "the one next action, with its reason and exact command line",
        ("next", "next --json"),
    ),
    Row(
        "probe",
        "probe",
        "diagnose",
        "time the working tree's package for about five seconds (learning, never a result)",
        ("probe", "probe --dry-run"),
    ),
    Row(
        "diagnose",
        "diagnose",
        "diagnose",
        "where the working tree's time goes: the phase split, with --profile the engine's",
        ("diagnose --quick", "diagnose --profile"),
    ),
    Row(
        "checks",
        "checks",
        "prototype",
        "run the surfaces' tests on the working tree, or on REF in a clean checkout; recorded by tree",
        ("checks --quick --surface auto", "checks HEAD"),
    ),
    Row(
        "screen",
        "screen",
        "screen",
        "six blocks: is the candidate worth proving? A filter, not evidence",
        (
            "screen HEAD~1 HEAD",
            "screen main..fast-ppu --dry-run",
            "screen HEAD~1 HEAD -- --game CartRunner-Nes-v0",
        ),
    ),
    Row(
        "plan",
        "plan",
        "orient",
        "the blocks and minutes that a true effect would take on this host, tier by tier",
        ("plan HEAD~1 HEAD", "plan --effect 1.03"),
    ),
    Row(
        "accept-stack",
        "accept_stack",
        "acceptance",
        "prove a stack of candidates as one; says nothing of its members",
        ("accept-stack BASE HEAD", "accept-stack BASE HEAD -- --max-blocks 24"),
    ),
    Row(
        "accept",
        "accept",
        "acceptance",
        "prove one candidate: anytime-valid bounds, up to 48 blocks (--full: 192)",
        ("accept HEAD~1 HEAD", "accept v1.0 HEAD --full --json"),
    ),
    Row(
        "bisect",
        "bisect",
        "diagnose",
        "which commit between two made it slower (or faster), as sure as measurements can be",
        ("bisect v1.0 HEAD", "bisect HEAD~16 HEAD --dry-run", "bisect v1.0 HEAD --faster --threshold 1.05"),
    ),
    Row(
        "calibrate",
        "calibrate",
        "orient",
        "measure one revision against itself: this host's noise floor",
        ("calibrate HEAD", "calibrate HEAD --full"),
    ),
    Row(
        "round",
        "round",
        "orient",
        "one improvement round against a fixed baseline: open, show, confirm, resume, abandon",
        (
            'round open --goal "faster frames"',
            "round show",
            "round confirm",
            'round abandon --reason "other plans"',
        ),
    ),
    Row(
        "handoff",
        "handoff",
        "orient",
        "is an experiment ready for a research loop? Then write its protocol and its table of rounds",
        ("handoff DESIGN.md --run-vp", "handoff DESIGN.md --vp-evidence vp-l1.json --locale en"),
        any_repository=True,
    ),
    Row(
        "supervise",
        "supervise",
        "prototype",
        "run a protocol's rounds: a researcher writes, the harness checks, trains, evaluates and decides",
        (
            'supervise autoresearch-protocol.md --researcher "my-agent {prompt}"',
            'supervise experiment/ --researcher "./propose.sh" --policy verified',
        ),
        any_repository=True,
    ),
    Row(
        "attempt",
        "attempt",
        "prototype",
        "the same, one round at a time, for an agent or a person that writes the code itself",
        (
            "attempt start autoresearch-protocol.md",
            'attempt submit --strategy "cosine schedule"',
            'attempt close --reason "wrong file"',
        ),
        any_repository=True,
    ),
    Row(
        "protocol",
        "protocol",
        "orient",
        "change the running goal's protocol, logged with who, when and why",
        ("protocol set max_rounds 20", 'protocol set target 0.95 --reason "agreed"'),
        any_repository=True,
    ),
    Row(
        "holdout",
        "holdout",
        "acceptance",
        "seal an evaluator that no researcher can read; it is asked before a round is kept",
        (
            'holdout seal experiment/ --files ../hidden --command "python {holdout}/test.py" --looks 5',
            "holdout final",
        ),
        any_repository=True,
    ),
    Row(
        "serve",
        "serve",
        "orient",
        "a live page of the loops and the ledger for a browser of this machine; read-only",
        ("serve", "serve --port 0 --json", "serve --every 10"),
    ),
    Row(
        "audit",
        "audit",
        "acceptance",
        "run a kept attempt again from a fresh checkout, and hold what is stored against it",
        ("audit r3", "audit 20260101-120000 --json", "audit r3 --runs 8"),
        any_repository=True,
    ),
    Row(
        "show",
        "show",
        "orient",
        "the goal with its rounds, or one attempt with its patch and its runs",
        ("show", "show r3"),
        any_repository=True,
    ),
    Row(
        "journal",
        "journal",
        "orient",
        "experiments one by one on a script's number, measured here; then branches of what was kept",
        (
            'journal init --name "bundle size" --metric-name kb --command "make size" --approve "agreed"',
            'journal log --description "drop the polyfills" --hypothesis "nobody needs them"',
            'journal run --researcher "my-agent {prompt}" --experiments 20',
            "journal status",
            "journal evaluate --metric 1.07",
            'journal idea add "tree shaking"',
            "journal finalize plan --trunk main",
            'journal finalize create --approve "reviewed the plan"',
            "journal summary --jsonl old/autoresearch.jsonl",
        ),
        any_repository=True,
    ),
    Row(
        "campaign init",
        "campaign_init",
        "orient",
        "open a campaign: its goal, and a folder with its budget, compute, data and research documents",
        (
            "campaign init faster-slope --protocol slope/autoresearch-protocol.md",
            "campaign init faster-slope --set metric=val_bpb --set direction=lower --compute none",
        ),
        any_repository=True,
    ),
    Row(
        "campaign plan",
        "campaign_plan",
        "orient",
        "the next generation's hypotheses: cited, diverse, each with mechanism, size and falsification",
        ("campaign plan --hypotheses matrix.json", 'campaign plan --researcher "my-agent {prompt}"'),
        any_repository=True,
    ),
    Row(
        "campaign critique",
        "campaign_critique",
        "orient",
        "critics score a generation before compute is spent; the survivors are queued",
        (
            "campaign critique --scores scores.json",
            'campaign critique --researcher "my-agent {prompt}" --quality 7',
        ),
        any_repository=True,
    ),
    Row(
        "campaign run",
        "campaign_run",
        "prototype",
        "make, measure and verify the queued experiments, generation by generation, within the budget",
        (
            'campaign run --researcher "my-agent {prompt}" --generations 1',
            'campaign run faster-slope --researcher "my-agent {prompt}" --propose --slots 2',
        ),
        any_repository=True,
    ),
    Row(
        "campaign ladder",
        "campaign_ladder",
        "orient",
        "how wide the search is and what comes when it is stuck; queue a lever",
        (
            "campaign ladder",
            'campaign ladder --add "closed form" --program solver.md --source https://example.org/solver',
            'campaign ladder --searched "https://example.org/search?q=slope"',
        ),
        any_repository=True,
    ),
    Row(
        "campaign done",
        "campaign_done",
        "orient",
        "is the campaign done: its documents, no open row, and a result that the ledger bears out",
        ("campaign done", "campaign done faster-slope --json"),
        any_repository=True,
    ),
    Row(
        "record",
        "record",
        "record",
        "import an aggregate made elsewhere; marked imported, never counts as evidence",
        (
            'record aggregate.json --description "from the lab machine"',
            "record aggregate.json --status discard",
        ),
    ),
    Row(
        "publish",
        "publish",
        "record",
        "fast-forward the current branch to an accepted candidate; nothing else ever moves a branch",
        (
            'publish --approve "proven and reviewed"',
            'publish topic --approve "reviewed"',
            "publish --dry-run",
        ),
    ),
    Row(
        "note", "note", "record", "append a lesson to scratchpad.md, stamped", ('note "the split costs 3 %"',)
    ),
    Row("idea", "idea", "record", "append an idea to ideas.md, stamped", ('idea "cache the tile rows"',)),
    Row(
        "report",
        "report",
        "record",
        "the evidence as one page for a browser, as Markdown or JSON; --session: what a session did",
        ("report", "report --session", "report --format json --output report.json"),
    ),
    Row(
        "explain",
        "explain",
        "orient",
        "one attempt from its plan to its verdict",
        ("explain 20260101-120000",),
    ),
    Row(
        "verify",
        "verify",
        "orient",
        "derive every decision again from the raw slices",
        ("verify", "verify --json"),
    ),
    Row(
        "export",
        "export",
        "record",
        "the ledger as one file without this machine's names",
        ("export ledger.jsonl", "export results.tsv --as karpathy"),
    ),
    Row(
        "import",
        "import_",
        "record",
        "another ledger's results, shown and never counted",
        ("import ledger.jsonl", "import old/autoresearch.jsonl", "import results.tsv --as leo"),
    ),
    Row(
        "doctor",
        "doctor",
        "orient",
        "what this machine does to measurements, and what can be done about it",
        ("doctor", "doctor --json"),
    ),
    Row(
        "simulate",
        "simulate",
        "orient",
        "how often the rules err, on simulated machines, beside the predecessor's",
        ("simulate", "simulate --trials 500 --machine shared --json", "simulate --loops"),
    ),
    Row(
        "gc",
        "gc",
        "orient",
        "free builds and compilers' folders that can be made again; never a result",
        ("gc --dry-run", "gc --older-than 3 --keep 4", "gc --max-size 2G"),
    ),
    Row(
        "stop",
        "stop",
        "pause",
        "pause the open round, or end a loop after its round or wave",
        ('stop --reason "enough"',),
    ),
)

BY_NAME = {row.name: row for row in ROWS}


def joined(words: list[str]) -> tuple[str, list[str]]:
    """The subcommand that the first words name, and the words after it."""
    two = " ".join(words[:2])
    return (two, words[2:]) if two in BY_NAME else (words[0], words[1:])


def family(name: str) -> list[Row]:
    """The members of a family by its first word."""
    return [row for row in ROWS if row.name.startswith(f"{name} ")]
