"""Renders the state of a node for the terminal, and its events as JSON. No network, no files."""
