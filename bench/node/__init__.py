"""A training step of a node beside trl's, in time and memory, and the cost of joining a swarm."""
