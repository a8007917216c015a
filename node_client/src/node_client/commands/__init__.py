"""The implementations of the commands of `swarm-node`, except `join`, `train` and `make-model`."""
