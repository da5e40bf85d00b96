"""The loops' files and grammars: what is written can be read again, and every fault has its own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartlab.errors import BadInput, MetricError, NotLegalNow
from cartlab.loops import design, metrics, policies, protocol, states, tasks
from cartlab.loops.experiences import Experiences, Row, one_line, parse, render
from cartlab.model import STATUSES

FIXTURES = Path(__file__).parent / "fixtures"
WORDS = st.text(max_size=30).map(one_line)
PLAIN = st.from_regex(r"[a-z][a-z ]{0,20}[a-z]", fullmatch=True)


# --- protocol -------------------------------------------------------------------------------------


def fixture() -> str:
    return (FIXTURES / "autoresearch-protocol.md").read_text(encoding="utf-8")


def test_lh10_lh11_ls1_the_document_s_own_protocol_is_read_and_written_byte_for_byte() -> None:
    found = protocol.parse(fixture())
    assert (found.metric, found.direction, found.baseline) == ("accuracy", "higher", "0.9012")
    assert found.fixed == ("eval.py", "data/") and found.variable == ("model.py", "layers/")
    assert found.time_limit_s == 300.0 and found.target == 0.95 and found.max_rounds == 12
    assert found.kernel_targets[0].atol == 1e-4
    # Unknown fields are kept, not lost.
    assert found.extra == {"Budget": ("owner: nobody yet", "gpu hours: 4")}
    again = protocol.parse(protocol.render(found))
    assert again == found
    bare = protocol.render(found, "en")
    assert "## Fixed\n" in bare and "- adjustable range: the head" in bare
    assert protocol.parse(bare) == found


def test_lh10_our_own_parts_can_be_left_out_for_the_document_s_reader() -> None:
    text = protocol.render(protocol.parse(fixture()), ours=False)
    assert "## Train" not in text and "## Eval" in text


@given(
    title=PLAIN,
    rounds=st.integers(1, 999),
    target=st.none() | st.floats(-1e6, 1e6),
    names=st.lists(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?\.py", fullmatch=True), min_size=1, max_size=4),
    direction=st.sampled_from(["higher", "lower"]),
    strict=st.booleans(),
    command=PLAIN,
)
def test_a_protocol_survives_its_file(
    title: str,
    rounds: int,
    target: float | None,
    names: list[str],
    direction: str,
    strict: bool,
    command: str,
) -> None:
    value = protocol.Protocol(
        title=title,
        research_question=title,
        max_rounds=rounds,
        target=None if target is None else float(f"{target:.15g}"),
        metric="loss",
        direction=direction,
        baseline="1.25",
        fixed=tuple(names),
        time_limit="30 s",
        epoch_limit="2",
        variable=tuple(names),
        variable_range=command,
        eval_command=command,
        train_command=command,
        strict_variable=strict,
    )
    for locale in protocol.LOCALES:
        assert protocol.parse(protocol.render(value, locale)) == value
    assert protocol.Protocol.from_json(value.to_json()) == value


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("research_question: does a better head help the small classifier", "", "research_question"),
        ("max_rounds: 12", "max_rounds: many", "max_rounds"),
        ("max_rounds: 12", "max_rounds: 0", "max_rounds"),
        ("baseline: accuracy = 0.9012", "baseline: 0.9012", "baseline"),
        ("baseline: accuracy = 0.9012", "baseline: loss = 0.9012", "one metric"),
        ("baseline: accuracy = 0.9012", "baseline: accuracy = nan", "baseline"),
        ("target: 0.95", "target: good", "target"),
        ("- files: eval.py, data/", "", "Fixed.files"),
        ("- files: eval.py, data/", "- files: ../eval.py", "in the experiment's folder"),
        ("- time_limit: 5 min", "- time_limit: soon", "time_limit"),
        ("- direction: maximize", "- direction: sideways", "direction"),
        ("- metric: accuracy", "", "Eval.metric"),
        ("    fixture: fixtures:gelu_inputs", "", "must set fixture"),
        ("layers.fast:gelu", "layers.fast", "module:attr"),
        ("atol: 0.0001", "atol: small", "atol"),
        ("```\n", "", "never closed"),
    ],
)
def test_ls1_lh12_a_missing_or_broken_field_is_named(old: str, new: str, says: str) -> None:
    text = fixture()
    assert old in text
    at = text.rindex(old) if old == "```\n" else text.index(old)
    with pytest.raises(BadInput) as error:
        protocol.parse(text[:at] + new + text[at + len(old) :])
    assert says in error.value.message


def test_lh12_targets_come_from_the_first_yaml_fence() -> None:
    text = fixture() + "\n```yaml\nkernel_targets:\n  - name: other\n```\n"
    assert [target.name for target in protocol.parse(text).kernel_targets] == ["gelu"]


def test_lh1_a_design_document_without_the_section_is_refused_by_its_heading() -> None:
    with pytest.raises(BadInput, match="## Autoresearch Protocol"):
        design.parse_design("# Design\n\n## Something else\n")


# --- experiences ----------------------------------------------------------------------------------

ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS, WORDS), max_size=4)


@given(ROWS, PLAIN, st.floats(-1e9, 1e9))
def test_lh13_experiences_survive_their_file(rows: list[tuple[str, ...]], metric: str, best: float) -> None:
    value = Experiences(
        metric, f"{best:.9g}", 0, len(rows), 9, "running", tuple(Row(n, *row) for n, row in enumerate(rows))
    )
    assert parse(render(value)) == value


def test_lh13_the_document_s_own_table_is_read() -> None:
    text = (FIXTURES / "experiences.md").read_text(encoding="utf-8")
    found = parse(text)
    assert (found.metric, found.best, found.best_round, found.rounds, found.max_rounds) == (
        "accuracy",
        "0.9140",
        2,
        3,
        12,
    )
    assert found.rows[2].insight == "a | in a cell" and found.rows[3].verdict == ""
    # The older header's lines are kept.
    assert found.other == ("mode: perf", "best_commit: 0123456")
    assert render(found) == text


@pytest.mark.parametrize("name", ["best", "rounds", "status"])
def test_experiences_name_a_missing_header_line(name: str) -> None:
    text = (FIXTURES / "experiences.md").read_text(encoding="utf-8")
    broken = "".join(line for line in text.splitlines(True) if not line.startswith(f"{name}:"))
    with pytest.raises(BadInput, match=f"`{name}: "):
        parse(broken)


# --- METRIC lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "ours", "pi", "green"),
    [
        ("METRIC loss=1.5", 1.5, 1.5, 1.5),
        ("METRIC loss=1e-3", 1e-3, 1e-3, 1e-3),
        ("METRIC  loss=1", None, 1.0, 1.0),
        ("metric loss=1", None, None, 1.0),
        ("METRIC loss = 1", None, None, 1.0),
        ("METRIC loss=0x10", None, 16.0, None),
        ("METRIC loss=+2", None, 2.0, None),
        ("METRIC loss=nan", None, None, None),
        ("METRIC loss=Infinity", None, None, None),
        ("METRIC loss=1e999", None, None, None),
        ("METRIC loss=true", None, None, None),
        (" METRIC loss=1", None, None, None),
        ("METRIC loss=1 # best", None, None, None),
        ("xMETRIC loss=1", None, None, None),
        ("note\x85METRIC loss=1", None, None, None),
        ("note\x0cMETRIC loss=1", None, None, None),
        ("METRIC loss=1\r", 1.0, 1.0, 1.0),
    ],
)
def test_ld7_the_three_dialects(line: str, ours: float | None, pi: float | None, green: float | None) -> None:
    assert metrics.ours(line).values.get("loss") == ours
    assert metrics.pi(line).values.get("loss") == pi
    assert metrics.greencedar(line).values.get("loss") == green


def test_la5_a_nonce_admits_only_the_harness_s_own_lines() -> None:
    text = "METRIC loss=0\nMETRIC[beef] loss=2\n"
    assert metrics.ours(text, "beef").values == {"loss": 2.0}
    assert metrics.primary(text, "loss", "beef") == 2.0
    assert metrics.ours(text).values == {"loss": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "METRIC loss=1\nMETRIC loss=0\n",
        "METRIC other=1\n",
        "loss: 1\nloss: 2\n",
        "loss: nan\n",
        "loss: inf\n",
        "loss: true\n",
        "1 2\n",
        "",
    ],
)
def test_la9_a_number_that_could_be_two_things_is_none(text: str) -> None:
    with pytest.raises(MetricError):
        metrics.primary(text, "loss")


def test_lh5_the_plain_forms_of_a_metric_are_read() -> None:
    assert metrics.primary("epoch 3\nloss = 0.250\n", "loss") == 0.25
    assert metrics.written("epoch 3\nloss = 0.250\n", "loss") == "0.250"
    assert metrics.primary("0.5\n", "anything") == 0.5


# --- states and policies --------------------------------------------------------------------------


def test_every_verdict_of_the_ledger_has_its_words() -> None:
    assert set(states.VIEWS) >= set(STATUSES) - {"planned", "ok", "refused"}


# The mapping table's columns 001 (verdict), 002, 003 (status) and karpathy.
WORDS = """
baseline            | —                | keep          | passed  | keep
keep                | improved         | keep          | passed  | keep
keep_small_gain     | improved         | keep          | passed  | keep
keep_stack          | improved         | keep          | passed  | keep
discard             | not_improved     | discard       | passed  | discard
discard_stack       | not_improved     | discard       | passed  | discard
inconclusive        |                  | discard       | passed  | discard
unverified          | not_improved     | discard       | dropped | discard
no_change           | not_improved     | discard       | failed  | discard
crashed             | not_improved     | crash         | failed  | crash
timeout             | not_improved     | crash         | failed  | crash
build_failed        | not_improved     | crash         | failed  | crash
metric_error        | not_improved     | crash         | failed  | crash
checks_failed       | not_improved     | checks_failed | failed  | discard
behaviour_changed   | not_improved     | checks_failed | failed  | discard
compliance_failed   | not_improved     | discard       | failed  | discard
parity_violation    | parity_violation | checks_failed | failed  | discard
tampered            | not_improved     | crash         | failed  | crash
busy_invalid        |                  | discard       | queued  | discard
interrupted         |                  | discard       | queued  | discard
"""


@pytest.mark.parametrize("line", WORDS.strip().splitlines())
def test_each_verdict_has_each_document_s_word(line: str) -> None:
    name, verdict, journal, campaign, karpathy = (cell.strip() for cell in line.split("|"))
    found = states.VIEWS[name]
    assert (found.supervisor[0], found.journal, found.campaign[0], found.karpathy) == (
        verdict,
        journal,
        campaign,
        karpathy,
    )


@given(st.lists(st.sampled_from(states.ATTEMPT_STATES), max_size=12))
def test_an_attempt_only_takes_legal_steps(path: list[str]) -> None:
    """Whatever is asked for: accepted comes after decided, and nothing comes after closed."""
    now: str | None = None
    seen: list[str] = []
    for to in path:
        try:
            now = states.step(now, to)
        except NotLegalNow:
            continue
        seen.append(to)
    assert not seen or seen[0] == "proposed"
    assert "closed" not in seen[:-1]
    if "accepted" in seen and "interrupted" not in seen:
        assert "decided" in seen[: seen.index("accepted")]


@given(st.floats(-1e6, 1e6), st.sampled_from(["higher", "lower"]))
def test_ls23_a_tie_is_no_improvement(value: float, direction: str) -> None:
    assert policies.greedy(value, value, direction).status == "discard"
    assert policies.reaches(value, value, direction)


@given(st.lists(st.floats(-5, 5), max_size=60))
def test_paired_ends_within_its_pairs(effects: list[float]) -> None:
    found = policies.paired(effects, limit=48)
    assert (found.status is None) == (len(effects) < 48 and found.status not in ("keep", "discard"))


def test_ls10_ls37_the_prompt_says_what_the_document_says_and_no_file_s_content() -> None:
    found = protocol.parse(fixture())
    rows = [Row(n, "✅", str(n), "improved", f"idea {n}", "why", "") for n in range(9)]
    text = tasks.prompt(found, 9, rows, "experiences.md")
    assert "improve accuracy (maximize)" in text and "Round 9 of 12" in text
    assert "idea 8" in text and "idea 4" in text and "idea 3" not in text
    assert "## Profile-first discipline" in text and "1. Run `python profile_ops.py`" in text
    assert text.count("6. Report") == 1
    import dataclasses

    plain = tasks.prompt(dataclasses.replace(found, profile_command=""), 9, rows, "experiences.md")
    assert "Profile-first" not in plain and "1. Read the variable files" in plain and "5. Report" in plain
