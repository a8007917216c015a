"""Tasks: their identity, the allow-list of datasets and the verifier process.

Read `keyspace` for which index a task gets, `allowlist` for what may be used, and `verifier` for
how questions are made and answers scored. `pipe` and `process` connect it to `child`, the process
that runs the generators; `gate` measures what gets on the list. `docs/tasks.md` is the overview.
"""
