"""Checks closed judge rounds and seasons, for anybody: no token, no model, no trust in the site.

`records` decodes what the site publishes. `checks`, `chain`, `earlier`, `evidence`, `recount`,
`results` and `season` compare it with what is computed again on this machine, and `audit` runs the
checks of a round in order; none of these reads or writes a file or the network. `download`,
`listing` and `beacon` fetch, `report` renders, and `command` and `season_command` join them to
`swarm-node verify-round` and `verify-season`.
"""
