"""Measure two git revisions against each other and keep only proven speed-ups."""
