"""The judge's statistics, as pure functions.

`comparison` tests swarm against isolated nodes within a season, with the help of `randomisation`
and `planning`. `over_seasons` makes this comparison across seasons, and `task_gaps` splits the
difference between the arms by dataset. `copying` finds copied answers, with the help of `matching`,
and `jumps` finds sudden gains. `summaries` computes the summary of a round.
"""
