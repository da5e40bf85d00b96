"""The journal: one hypothesis after the other against one script's number, and branches of what was kept.

Contract: docs/journal.md. session: a session's values and its lines as a view of the ledger; document and
scripts: what `init` writes; files: where that is; opening; judging: what is run on a submission and what its
verdict is; recording: a submission from its folder to its place in the ledger, and recovery; ideas;
researching: with a researcher's command; finalising and branching: branches for review.
"""
