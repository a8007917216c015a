"""The relay: a bounded pool of rollouts in Redis, and who contributed."""
