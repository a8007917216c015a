"""Reads a run's settings: command line, environment, file, record of the last run. No torch."""
