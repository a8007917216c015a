"""Tasks: their identity, the allow-list of datasets, the verifier process, and a judge's quiz.

Read `keyspace` for which index a task gets, `allowlist` for what may be used, and `verifier` for
how questions are made and answers scored (`pool`: by several at once). `quiz` says how a round's
questions follow from rules and a secret, and `marks` how verdicts become a score.

`pipe`, `board`, `process`, `keeper` and `batches` connect a verifier to `child`, the process that
runs the generators; `gate` measures what gets on the list. `docs/tasks.md` is the overview.
"""
