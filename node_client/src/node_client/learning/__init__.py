"""SAPO on one node: questions, own and external rollouts, the update. No network, no display."""
