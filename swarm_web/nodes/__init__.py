"""Nodes and their tokens."""
