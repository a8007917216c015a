"""The node client: trains a local model in a swarm for collective reinforcement learning."""
