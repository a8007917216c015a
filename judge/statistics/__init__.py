"""The judge's statistics; pure.

`comparison` tests swarm against isolated nodes within a season and `over_seasons` across seasons,
with `randomisation` and `planning` below them; `task_gaps` splits the difference by dataset.
`copying` finds copied answers (`matching`) and `jumps` sudden gains. `summaries` condenses a round.
"""
