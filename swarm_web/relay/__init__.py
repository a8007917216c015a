"""The relay: a bounded pool of rollouts in memory, and what nodes contribute to it and use."""
