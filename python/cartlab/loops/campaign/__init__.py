"""A campaign: generations of bounded experiments over hypotheses that were criticised before they cost a run.

Contract: docs/loops.md. Values and pure parts: hypotheses, matrix, budget, records. A campaign is a goal like
any other (loop "campaign"), its experiments are the goal's attempts, and its documents are views that are
made again from the ledger.
"""
