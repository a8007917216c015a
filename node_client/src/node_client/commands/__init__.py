"""What the commands of `swarm-node` do, except `join` and `train`."""
