"""Checks closed judge rounds and seasons, for anybody: no token, no model, no trust in the site.

`records` decodes what the site publishes. `checks`, `chain`, `earlier`, `evidence`, `recount`,
`results` and `season` compare it with what this machine computes again, and `audit` runs the checks
of a round in order; none of these does I/O. `download`, `listing` and `beacon` fetch, and `report`
renders. `command` and `season_command` combine them into `swarm-node verify-round` and
`verify-season`.
"""
