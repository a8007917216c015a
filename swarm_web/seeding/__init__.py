"""Demo data: a swarm that never was, for screenshots, tests and measurements."""
