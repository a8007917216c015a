"""Benchmark of a node's training step against trl's, and of the cost of joining a swarm."""
