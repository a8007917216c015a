"""The quality gate: measures every generator of the installed library and writes the allow-list.

Run `python -m swarm_tasks.gate`. `checks` decides whether a dataset is allowed, and `ranges` finds
which fields of its configuration may be set and to what. `answers` has the texts that are tried as
answers. `probes` makes entries (questions with their metadata) and scores texts as answers to them.
`source` searches a verifier's code, and `isolate` runs each measurement in a process of its own.
After the gate, run `levels` and then `spaces` to write `levels.json` and `spaces.json`.
`docs/tasks.md` explains the criteria.
"""
