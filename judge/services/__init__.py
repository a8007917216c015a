"""Changes of seasons, rounds, answers and scores.

Functions that change a row lock it and check it again, or use an UPDATE whose WHERE clause still
has to match, so ticks may repeat and workers may race. Time is an argument: the server's clock
decides, never a node's.
"""
