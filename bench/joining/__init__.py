"""Benchmark of the time from the Join page to a new node's first score."""
