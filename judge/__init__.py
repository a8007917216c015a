"""Rounds, questions, answers and scores: the central judge."""
