"""Rollouts that are exchanged with other nodes: shared, checked, sampled and mixed in."""
