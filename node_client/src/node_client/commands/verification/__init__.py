"""Checks closed judge rounds and seasons, without a token, a model, or trust in the site.

`records` decodes what the site publishes. `checks`, `chain`, `earlier`, `evidence`, `recount`,
`results` and `season` compare it with what this machine computes again, and `audit` runs the checks
of a round in order. None of these modules does I/O. `download`, `listing` and `beacon` fetch data,
and `report` renders results. `command` and `season_command` combine all of them into
`swarm-node verify-round` and `verify-season`.
"""
