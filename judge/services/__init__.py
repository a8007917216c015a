"""Services that change seasons, rounds, answers and scores.

A service that changes a row first locks the row and checks its state again, or checks it in the
WHERE clause of the UPDATE. Ticks may therefore be repeated, and workers may run concurrently. The
current time is an argument, `now`: it comes from the server's clock, never from a node.
"""
