"""The settings of a run: command line, environment, files, memory of the last run. No torch."""
