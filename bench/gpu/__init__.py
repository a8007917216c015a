"""Benchmark of training on a GPU, compared with the CPU and with trl."""
