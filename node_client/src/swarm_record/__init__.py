"""How a site's public record is computed; site and nodes use the same code, so nodes can verify it.

`keys` signs, `answers` encodes answers for signing, `merkle` hashes many entries into one root,
`results` encodes a round's published scores, and `chain` is the hash chain that records roots and
events. `stats`, `stream`, `ranking`, `ledgers` and `board_rows` compute a season's leaderboard from
its rounds' results. No Django, no network, no files; `docs/verification.md` describes what is
proved.
"""
