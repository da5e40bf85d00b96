"""Reading revisions and building them, without changing the repository.

    resolve(repo, text) / resolve_pair(repo, texts)   what people type -> model.Ref; BadRef (20) otherwise
    check_compliance(repo, base, cand, protected, may_touch)   changed paths; ComplianceFailed (18)
    export(repo, ref, folder)                         the tree as files, compared with its blobs
    build(config, ref, root, fresh=, progress=)       model.Build from the cache or made; BuildFailed (14)
    variant(config, build, seed)                      the same build at other addresses; CannotRelink
    check(build)                                      Tampered (16) where a finished build changed on disk
    strangers(repo, base, cand, inputs, candidates)   commits of no recorded candidate
    missing(repo, commits)                            those that are gone
    top / branch / dirty / tree_of_worktree           facts about the work tree
    toolchain(folder) / toolchain_id(folder)          what compiles here

HEAD, index, work tree, branches and remotes keep every byte: nothing here runs a git command that writes.
"""

from __future__ import annotations

from cartlab.sources.builds import build
from cartlab.sources.export import Exported, export
from cartlab.sources.git import branch, dirty, top
from cartlab.sources.layouts import VARIANTS, CannotRelink, variant
from cartlab.sources.lineage import missing, strangers
from cartlab.sources.paths import changed, check_compliance, matches, protected_changes
from cartlab.sources.refs import first_parents, is_ancestor, resolve, resolve_pair, split_pair
from cartlab.sources.stamps import check, log_of
from cartlab.sources.tools import toolchain, toolchain_id
from cartlab.sources.worktree import tree_of_worktree

__all__ = [
    "VARIANTS",
    "CannotRelink",
    "Exported",
    "branch",
    "build",
    "changed",
    "check",
    "check_compliance",
    "dirty",
    "export",
    "first_parents",
    "is_ancestor",
    "log_of",
    "matches",
    "missing",
    "protected_changes",
    "resolve",
    "resolve_pair",
    "split_pair",
    "strangers",
    "toolchain",
    "toolchain_id",
    "top",
    "tree_of_worktree",
    "variant",
]
