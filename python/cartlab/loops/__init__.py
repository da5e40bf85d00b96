"""The research loops as software: goals, attempts, measurements, decisions; the documents' files as views.

Contract: docs/loops.md. Values and pure parts: metrics, protocol, experiences, states, goals, compliance,
policies, tasks, views. What touches the machine: manifest, trees, worktree, isolation, commands, running.
A round: dispatch, intake, rounds. The loops: handoff, opening, supervise, byhand; approvals and stall beside
them. campaign/ is the loop of generations on the same parts (docs/campaign.md).
parity_probe.py is a script that runs by path in other processes, as landlock.py beside this package.
"""
