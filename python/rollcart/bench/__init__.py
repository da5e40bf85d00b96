"""Benchmarks of the environment: what scripts/benchmark_sps.py runs. Learning, never evidence of a speed-up.

Evidence comes from cartlab alone, which measures two revisions with its own harness. `retro_peer` is
stable-retro tuned as an expert would, `sps` times sides of one workload in turns and reports, `grid` does so
by lanes and threads for any game (`rollcart bench`).
"""
