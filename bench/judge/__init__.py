"""Benchmark of a judge round of a thousand nodes, from the answers to the ranks."""
