"""The relay: a bounded pool of rollouts in memory, and records of what nodes publish and use."""
