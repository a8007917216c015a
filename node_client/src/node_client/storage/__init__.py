"""Reads and writes what a client keeps on disk: state folder, checkpoints, records. No network."""
