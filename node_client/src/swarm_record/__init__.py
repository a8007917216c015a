"""How a site's public record is made, so that a node can check it: the same code on both sides.

`keys` signs, `answers` says what is signed of an answer, `merkle` makes one hash of many, `results`
writes a round's scores as they are published, and `chain` joins all of it link by link. `stats`,
`stream`, `ranking`, `accounts` and `publishing` make a season's leaderboard of its rounds' results.
No Django, no network and no file: `docs/verification.md` says what is proved by it.
"""
