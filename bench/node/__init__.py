"""Benchmark of a node's training step, compared with trl, and of the cost of joining a swarm."""
