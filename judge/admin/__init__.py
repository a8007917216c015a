"""The judge's admin: seasons, rounds, nodes, flags and rulings."""

from judge.admin import nodes, oversight, rounds, seasons

__all__ = ["nodes", "oversight", "rounds", "seasons"]
