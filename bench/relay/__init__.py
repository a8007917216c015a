"""Benchmark of what relaying rollouts costs the site, compared with a minimal relay."""
