"""An edit that stands in the user's checkout before its hypothesis: refused, or adopted as an experiment.

Only the files that experiments may change count. They are read one by one; git's index, which can be told to
look away, is not asked, and nothing in the checkout is ever written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cartlab.errors import BadInput, NotLegalNow, UsageError
from cartlab.loops import manifest, trees, views
from cartlab.loops.campaign.hypotheses import Hypothesis
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.manifest import Change, Entry
from cartlab.loops.running import rooted

Edit = Sequence[Change]


def edit_of(repo: Path, campaign: Campaign) -> Edit | None:
    """What differs from HEAD in the files that experiments may change; None where nothing does, or where the
    campaign has adopted it.
    """
    goal = campaign.goal
    top = str(goal.body["top"])
    globs = rooted(top, views.protocol_of(goal).variable)
    here = manifest.matching(_scan(repo, top), globs)
    for one in campaign.experiments:
        if one.adopted and manifest.matching(trees.manifest_of(repo, one.adopted), globs) == here:
            return None
    found = manifest.changes(manifest.matching(trees.manifest_of(repo, "HEAD"), globs), here)
    return found or None


def refusal(repo: Path, edit: Edit) -> NotLegalNow:
    """No edit comes before its hypothesis."""
    path, what = edit[0].path, edit[0].what
    return NotLegalNow(
        f"no production file may be edited before its hypothesis; {path} was {what} in {repo}",
        "put the edit aside (git stash), or describe it as a hypothesis of the plan: --adopt ID measures it",
    )


def adopt(
    repo: Path, campaign: Campaign, edit: Edit | None, name: str, kept: Sequence[tuple[str, Hypothesis]]
) -> tuple[str, str]:
    """Keep the edit as a commit: (exp_id of its hypothesis, commit). The checkout stays as it is."""
    if edit is None:
        raise UsageError(
            f"--adopt {name} needs an edit of a file that experiments may change; the checkout has none",
            "leave it out: the researcher makes the change",
        )
    ids = [exp_id for exp_id, one in kept if one.id == name]
    if len(ids) != 1:
        raise UsageError(
            f"--adopt must name one hypothesis of the plan by its id; {name!r} is {len(ids)} of them",
            "one of " + ", ".join(one.id for _, one in kept),
        )
    base = trees.commit_of(repo, "HEAD")
    with tempfile.TemporaryDirectory(prefix="cartlab-") as place:
        folder = Path(place)
        trees.lay(repo, base, folder)
        trees.take(edit, repo, folder)
        tree = trees.write(repo, folder, manifest.scan(folder), base)
    made = trees.commit(repo, tree, [base], f"autoresearch: the checkout's edit, hypothesis {name}")
    trees.keep_ref(repo, f"{trees.REFS}attempts/{campaign.goal.id}-adopted-{ids[0]}", made)
    return ids[0], made


def carry(repo: Path, adopted: str, work: Path) -> None:
    """Make an adopted edit's changes in a working copy, whose other files stay as they are."""
    base = trees.commit_of(repo, f"{adopted}^")
    changes = manifest.changes(trees.manifest_of(repo, base), trees.manifest_of(repo, adopted))
    with tempfile.TemporaryDirectory(prefix="cartlab-") as place:
        trees.lay(repo, adopted, Path(place))
        trees.take(changes, Path(place), work)


def _scan(repo: Path, top: str) -> Mapping[str, Entry]:
    if not top:
        return manifest.scan(repo)
    if not (repo / top).is_dir():
        raise BadInput(f"the experiment's folder {top} must be in {repo}; there is none")
    return {f"{top}/{path}": entry for path, entry in manifest.scan(repo / top).items()}
