"""The relay: a bounded pool of rollouts in Redis, and counters of contributions."""
