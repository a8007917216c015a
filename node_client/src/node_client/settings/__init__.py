"""Reads settings from command line, environment, file and last run. Does not import torch."""
