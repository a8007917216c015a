"""Reads and writes a client's files: state folder, checkpoints, records. Uses no network."""
