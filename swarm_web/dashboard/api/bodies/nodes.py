"""Bodies of answers about nodes."""

from datetime import datetime
from typing import Any

from swarm_web.dashboard.api.bodies.board import describe_lift
from swarm_web.dashboard.api.bodies.rounds import describe_scores
from swarm_web.dashboard.reports.node import NodeReport
from swarm_web.nodes.models import Node

# What is copied as it is.
_CONTRIBUTION = (
    *("step", "published", "rejected", "delivered", "local_used", "external_used"),
    *("used_by_others", "declared_checked", "declared_false"),
)


def describe_item(node: Node, *, now: datetime) -> dict[str, Any]:
    """Describe a node in short."""
    return {
        "node": node.name,
        "title": node.title,
        "model": node.model,
        "parameters": node.parameters,
        "arm": node.arm,
        "connected": node.is_connected(now=now),
        "last_seen": node.last_seen,
        "joined_at": node.created_at,
    }


def describe_node(report: NodeReport) -> dict[str, Any]:
    """Describe a node: standing, training and participation apart from each other."""
    node = report.node
    return {
        "node": node.name,
        "title": node.title,
        "model": node.model,
        "parameters": node.parameters,
        "arm": node.arm,
        "connected": report.connected,
        "last_seen": node.last_seen,
        "verdict": report.verdict,
        "season": report.season.name if report.season else None,
        "speed": report.speed,
        "hand_out": report.hand_out,
        "rulings": report.rulings,
        "keys": [
            {"public": key.public, "first_seen": key.first_seen} for key in report.signing_keys
        ],
        "scores": describe_scores(report.scores),
        **_describe_standing(report),
        **_describe_contribution(report),
    }


def _describe_standing(report: NodeReport) -> dict[str, Any]:
    row = report.row
    return {
        "of": report.ranked,
        "rank": row.rank if row else None,
        "remark": row.remark if row else "",
        "score": row.score if row else None,
        "interval": row.interval if row else None,
        "n": row.n if row else 0,
        "rounds": row.rounds if row else 0,
        "missed": row.missed if row else 0,
        "cells": {cell.dataset: cell for cell in report.cells},
        **describe_lift(report.lift),
    }


def _describe_contribution(report: NodeReport) -> dict[str, Any]:
    part = report.contribution
    return {
        **{name: getattr(part, name) if part else 0 for name in _CONTRIBUTION},
        "delivered_to_others": report.delivered_to_others,
        "training_reward": part.training_reward if part else None,
        "informative_share": part.informative_share if part else None,
        "declarations_count": part is None or part.declarations_lapsed_at is None,
        "external_dropped": part.external_dropped if part else {},
    }
