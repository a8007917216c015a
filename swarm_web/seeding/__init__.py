"""Demo data: an invented swarm for screenshots, tests and measurements."""
