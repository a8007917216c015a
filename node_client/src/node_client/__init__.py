"""Join a swarm for collective reinforcement learning with a local model."""
