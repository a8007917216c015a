"""The operator's side of the judge: seasons, rounds, and what looks odd in them."""

from judge.admin import nodes, oversight, rounds, seasons

__all__ = ["nodes", "oversight", "rounds", "seasons"]
