"""Benchmark of false claims, and of how many questions a claim needs, in simulated seasons."""
