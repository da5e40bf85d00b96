"""Reading revisions and building them, without changing the repository.

    resolve(repo, text)   what people type -> model.Ref; BadRef (20) otherwise
    check_compliance(repo, base, cand, protected, may_touch)   changed paths; ComplianceFailed (18)
    export.export(repo, ref, folder)                  the tree as files, compared with its blobs
    build(config, ref, root, fresh=, progress=)       model.Build from the cache or made; BuildFailed (14)
    variant(config, build, seed)                      the same build at other addresses; CannotRelink
    check(build)                                      Tampered (16) where a finished build changed on disk
    strangers(repo, base, cand, inputs, candidates)   commits of no recorded candidate
    missing(repo, commits)                            those that are gone
    top / branch / dirty / tree_of_worktree           facts about the work tree
    toolchain(folder) / toolchain_id(folder)          what compiles here

What builds and relinks is imported when it is first asked for: `next` asks of commits alone.
HEAD, index, work tree, branches and remotes keep every byte: nothing here runs a git command that writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cartlab.sources.git import branch, dirty, top
from cartlab.sources.lineage import missing, strangers
from cartlab.sources.paths import changed, check_compliance, matches, protected_changes
from cartlab.sources.refs import first_parents, is_ancestor, resolve
from cartlab.sources.tools import toolchain, toolchain_id

if TYPE_CHECKING:
    from cartlab.sources.builds import build
    from cartlab.sources.layouts import VARIANTS, CannotRelink, variant
    from cartlab.sources.stamps import check, log_of
    from cartlab.sources.worktree import tree_of_worktree

__all__ = [
    "VARIANTS",
    "CannotRelink",
    "branch",
    "build",
    "changed",
    "check",
    "check_compliance",
    "dirty",
    "first_parents",
    "is_ancestor",
    "log_of",
    "matches",
    "missing",
    "protected_changes",
    "resolve",
    "strangers",
    "toolchain",
    "toolchain_id",
    "top",
    "tree_of_worktree",
    "variant",
]

_LATE = {
    "build": "builds",
    "VARIANTS": "layouts",
    "CannotRelink": "layouts",
    "variant": "layouts",
    "check": "stamps",
    "log_of": "stamps",
    "tree_of_worktree": "worktree",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    return found
