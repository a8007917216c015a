"""Bodies of answers about the leaderboard."""

from typing import Any

from swarm_web.dashboard.reports.lineup import BoardLine, Lift, line_up
from swarm_web.leaderboard import Leaderboard, LeaderboardRow

# What is copied as it is.
_ROW = (
    *("rank", "remark", "node", "title", "model", "parameters", "arm", "score"),
    *(
        "interval",
        "recent_score",
        "n",
        "rounds",
        "missed",
        "cells",
        "external_used",
        "used_by_others",
        "last_seen",
        "connected",
    ),
)


def describe_board(board: Leaderboard) -> dict[str, Any]:
    """Describe a leaderboard; untrained models stand apart from those that compete."""
    listed = {row.node for row in board.rows}
    lines = [_describe_line(line) for line in line_up(board) if line.row.node in listed]
    return {
        "season": board.season,
        "window": board.window,
        "as_of": board.as_of,
        "items": lines,
        "base": [_describe_row(row) for row in board.base],
        "quarantined": board.quarantined,
        "waiting": board.waiting,
    }


def _describe_line(line: BoardLine) -> dict[str, Any]:
    return {**_describe_row(line.row), **describe_lift(line.lift)}


def _describe_row(row: LeaderboardRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _ROW}


def describe_lift(lift: Lift | None) -> dict[str, Any]:
    """Describe how far a score lies above that of the same model untrained."""
    return {
        "over_base": lift.difference if lift else None,
        "over_base_interval": lift.interval if lift else None,
    }
