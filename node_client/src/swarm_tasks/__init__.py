"""Tasks: their identity, the allow-list of datasets, the verifier, and the questions of a round.

`keyspace` draws the indices of tasks, `allowlist` decides which datasets may be used, and
`verifier` makes questions and scores answers (`pool` does so with several processes). `quiz` draws
a round's questions from rules and a secret, and `cells` turns verdicts into a score.

`pipe`, `step_board`, `process`, `keeper` and `batches` connect a verifier to `child`, the process
that runs the generators; `gate` measures which datasets are allowed. `docs/tasks.md` is the
overview.
"""
