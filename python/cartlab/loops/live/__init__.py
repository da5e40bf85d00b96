"""The live page of a root: its loops and its ledger in a browser on the same machine, read-only.

Contract: docs/loops.md. facts: what the ledger and the attempts' folders say, as values; trend: a goal's
values as a drawing; page: values as pages, all that came from outside escaped; server: who may ask, and for
what. Nothing here writes a byte of the state.
"""
