"""The implementations of the commands of `swarm-node`, except `join` and `train`."""
