"""What happens to seasons, rounds, answers and scores.

Every change of phase is a conditional UPDATE that tells whether it won, so beat may fire twice
and workers may race. Time is an argument: the server's clock decides, never a node's.
"""
