"""The quality gate: measures every generator of the installed library and writes the allow-list.

Run `python -m swarm_tasks.gate`. `checks` decides about a dataset and `ranges` finds what may be
set in its configuration. `answers` holds the texts that are tried, `probes` makes and scores,
`source` reads code, and `isolate` runs each measurement in a process of its own. `docs/tasks.md`
explains the criteria.
"""
