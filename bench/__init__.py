"""Benchmarks: each `make bench-NAME` prints tables; most write bench/results/NAME.json."""
