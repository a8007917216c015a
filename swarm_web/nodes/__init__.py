"""The accounts' nodes and their tokens."""
