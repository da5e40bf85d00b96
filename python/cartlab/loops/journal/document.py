"""autoresearch.md: its eight sections in French or English, and the block that the ledger fills. Pure.

The document is people's and agents' own text; only what stands between the two marks is written again after
each record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cartlab.loops.commands import plain
from cartlab.loops.goals import Goal
from cartlab.loops.journal import session
from cartlab.loops.journal.session import Terms
from cartlab.loops.states import VIEWS

LOCALES = ("fr", "en")
BEGIN, END = "<!-- autoresearch: tried, written again after each record -->", "<!-- autoresearch: end -->"
# key -> heading; also what a reader takes for it.
HEADINGS = {
    "fr": {
        "objective": "Objectif",
        "metrics": "Métriques",
        "run": "Comment exécuter",
        "scope": "Fichiers dans le périmètre",
        "off_limits": "Hors limites",
        "constraints": "Contraintes",
        "termination": "Terminaison",
        "tried": "Essais précédents",
    },
    "en": {
        "objective": "Objective",
        "metrics": "Metrics",
        "run": "How to Run",
        "scope": "Files in Scope",
        "off_limits": "Off Limits",
        "constraints": "Constraints",
        "termination": "Termination",
        "tried": "What's Been Tried",
    },
}
_WORDS = {
    "fr": {
        "title": "Autoresearch : ",
        "primary": "- **Primaire** : {metric} ({unit}{better} est mieux) — la cible d'optimisation",
        "secondary": "- **Secondaires** : {names} — moniteurs de compromis indépendants",
        "lower": "inférieur",
        "higher": "supérieur",
        "run": "`./autoresearch.sh` — sort des lignes `METRIC nom=nombre`.",
        "any": "tous, sauf ce qui est hors limites",
        "none": "aucun",
        "open": "jusqu'à interruption",
        "count": "{} expériences",
        "one": "1 expérience",
    },
    "en": {
        "title": "Autoresearch: ",
        "primary": "- **Primary**: {metric} ({unit}{better} is better) — what is optimised",
        "secondary": "- **Secondary**: {names} — watched, they decide nothing",
        "lower": "lower",
        "higher": "higher",
        "run": "`./autoresearch.sh` — prints `METRIC name=number` lines.",
        "any": "all, but for what is off limits",
        "none": "none",
        "open": "until interrupted",
        "count": "{} experiments",
        "one": "1 experiment",
    },
}
_TEXT_CAP = 300


def sections(text: str) -> dict[str, str]:
    """The text under each of the eight headings, in either language; a section that is missing is absent."""
    known = {heading.casefold(): key for names in HEADINGS.values() for key, heading in names.items()}
    out: dict[str, str] = {}
    parts = re.split(r"^##[ \t]+(.+?)[ \t]*$", text, flags=re.MULTILINE)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        key = known.get(heading.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold())
        if key is not None:
            out[key] = body.strip()
    return out


def fresh(terms: Terms) -> str:
    """The whole document at the start of a session."""
    words, names = _WORDS[terms.locale], HEADINGS[terms.locale]
    unit = f"{terms.unit}, " if terms.unit else ""
    secondary = [*terms.secondary, *(text for text in terms.guards if text not in terms.secondary)]
    bodies = {
        "objective": terms.objective or terms.name,
        "metrics": "\n".join(
            [
                words["primary"].format(metric=terms.metric, unit=unit, better=words[terms.direction]),
                words["secondary"].format(names=", ".join(secondary) or words["none"]),
            ]
        ),
        "run": words["run"] + (f"\n\n`{terms.command}`" if terms.command else ""),
        "scope": _bullets(terms.scope, words["any"]),
        "off_limits": _bullets((*terms.off_limits, session.SCRIPT, session.CHECKS), words["none"]),
        "constraints": _bullets(terms.constraints, words["none"]),
        "termination": ending_words(terms, terms.locale),
        "tried": f"{BEGIN}\n{END}",
    }
    body = "\n\n".join(f"## {names[key]}\n{bodies[key]}" for key in names)
    return f"# {words['title']}{terms.name}\n\n{body}\n"


def _bullets(items: Sequence[str], otherwise: str) -> str:
    return "\n".join(f"- {item}" for item in items) or otherwise


def ending_words(terms: Terms, locale: str) -> str:
    """When the session ends, as a document in that language says it."""
    found, words = [], _WORDS[locale]
    if terms.max_experiments is not None:
        found.append(words["one" if terms.max_experiments == 1 else "count"].format(terms.max_experiments))
    if terms.max_seconds is not None:
        found.append(f"{terms.max_seconds:g} s")
    if terms.target is not None:
        found.append(f"{terms.metric} {'<=' if terms.direction == 'lower' else '>='} {terms.target:g}")
    return ", ".join(found) or words["open"]


def ending_told(terms: Terms, told: str) -> str:
    """What the document's section on the end says, for English text around it: our own words are said
    in English whatever the document's language; people's words stay.
    """
    ours = {words["open"] for words in _WORDS.values()} | {ending_words(terms, one) for one in LOCALES}
    return ending_words(terms, "en") if told in ours else told


def with_tried(text: str, block: Sequence[str]) -> str:
    """The document with its block written again; all other text stays. Where the marks are gone the block
    goes to the end of its section, or of the document.
    """
    whole = "\n".join([BEGIN, *block, END])
    head, mark, rest = text.partition(BEGIN)
    _, closing, tail = rest.partition(END)
    if mark and closing:
        return head + whole + tail
    wanted = "|".join(re.escape(names["tried"]) for names in HEADINGS.values())
    hit = re.search(rf"^##[ \t]+(?:{wanted})[ \t]*$", text, re.MULTILINE | re.IGNORECASE)
    if hit is None:
        return text.rstrip("\n") + f"\n\n## {HEADINGS['en']['tried']}\n{whole}\n"
    following = re.search(r"^## ", text[hit.end() :], re.MULTILINE)
    at = hit.end() + following.start() if following else len(text)
    return text[:at].rstrip("\n") + f"\n{whole}\n" + ("\n" + text[at:] if following else "")


def tried(goal: Goal) -> list[str]:
    """What worked and why, what did not and why, which ideas failed more than once, the best value."""
    done, best = session.tries(goal), session.best_of(goal)
    terms = session.terms_of(goal)
    if not done:
        return ["Nothing yet."]
    groups: dict[str, list[str]] = {"keep": [], "discard": [], "failed": []}
    again: dict[str, int] = {}
    for one in done:
        decision = one.decision or {}
        word = VIEWS[str(one.status)].journal
        what = _data(one.steps.get("submitted", {}).get("strategy"))
        value = str(decision.get("text") or "no value")
        key = word if word in ("keep", "discard") else "failed"
        hint = str((one.steps.get("submitted", {}).get("asi") or {}).get("next_action_hint") or "")
        more = f" Next: {_data(hint)}" if hint else ""
        why = _data(decision["insight"])
        groups[key].append(f"- #{one.round} {what}: {value} ({one.status}; {why}){more}")
        if key != "keep":
            again[what.casefold()] = again.get(what.casefold(), 0) + 1
    dead = [f"- {name} ({count} times)" for name, count in again.items() if name and count > 1]
    current = "none" if best is None else f"{terms.metric} = {best.text}, experiment #{best.round}"
    lines = [f"Best: {current}."]
    for title, items in (
        ("What worked", groups["keep"]),
        ("What did not", groups["discard"]),
        ("What failed", groups["failed"]),
        ("Dead ends", dead),
    ):
        lines += ["", f"### {title}", *items] if items else []
    return lines


def _data(text: object) -> str:
    """A researcher's words as data: one line, capped, and no mark of a comment, which could end our block."""
    return plain(str(text or ""), _TEXT_CAP).replace("<!--", "<! --").replace("-->", "-- >")
