"""Checks a closed judge round, for anybody: no token, no model, no trust in the site.

`records` decodes what the site publishes, `checks`, `earlier` and `recount` compare it with what is
made again on this machine, `audit` puts them in order; none of these reads or writes anything.
`download` fetches, `report` draws, `command` joins them to `swarm-node verify-round`.
"""
