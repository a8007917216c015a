"""SAPO on one node: the step, the loss, own and external rollouts. No network, no display."""
