"""A campaign: generations of bounded experiments over hypotheses that were criticised before they cost a run.

Contract: docs/campaign.md. Values and pure parts: hypotheses, matrix, budget, records, tables, board,
reading, proposers, ladder, mechanism. The folder and what stands in it: folder, gates, opening, documents.
Planning: planning, asking, critique, edits. Running: driver, hands, generation, experiment, slots, compute,
verification, verdicts, results; told is the notifier.

A campaign is a goal like any other (loop "campaign"), its experiments are the goal's attempts, and its
documents are views that are made again from the ledger.
"""
