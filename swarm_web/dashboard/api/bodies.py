"""The bodies of the read API, made from the same reports as the pages."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from judge.models import Round, Score
from swarm_web.dashboard.reports.compare import METHOD, ClaimReport, CompareReport
from swarm_web.dashboard.reports.lineup import BoardLine, Lift, line_up
from swarm_web.dashboard.reports.node import NodeReport
from swarm_web.dashboard.reports.reasons import advise
from swarm_web.dashboard.reports.round import QuestionReport, RoundReport
from swarm_web.dashboard.reports.seasons import SEASONS_METHOD, SeasonsReport
from swarm_web.leaderboard import Leaderboard, LeaderboardRow

# What is copied as it is.
_ROW = (
    *("rank", "remark", "node", "model", "parameters", "arm", "score", "interval", "n", "rounds"),
    *("cells", "external_used", "last_seen", "connected"),
)
_CONTRIBUTION = ("step", "published", "rejected", "delivered", "local_used", "external_used")
_CLAIM = (
    *("model", "n_swarm", "n_isolated", "difference", "interval", "p_value", "p_adjusted"),
    *("verdict", "missing"),
)


def describe_board(board: Leaderboard) -> dict[str, Any]:
    """Describe a leaderboard; untrained models stand apart from those that compete."""
    lines = [_describe_line(line) for line in line_up(board) if not line.row.is_base]
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
    return {**_describe_row(line.row), **_describe_lift(line.lift)}


def _describe_row(row: LeaderboardRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _ROW}


def _describe_lift(lift: Lift | None) -> dict[str, Any]:
    return {
        "over_base": lift.difference if lift else None,
        "over_base_interval": lift.interval if lift else None,
    }


def describe_comparison(report: CompareReport, seasons: Iterable[SeasonsReport]) -> dict[str, Any]:
    """Describe a season's claims about the arms, and what all seasons say together."""
    return {
        "season": report.season.name if report.season else "",
        "final": report.final,
        "method": METHOD,
        "assignment": {
            "coin": report.assignment.coin,
            "nodes": report.assignment.nodes,
            "random": report.assignment.is_random,
            "words": report.assignment.words,
        },
        "tested": report.tested,
        "items": [_describe_claim(claim) for claim in report.claims],
        "seasons_method": SEASONS_METHOD,
        "seasons": [
            {"model": told.model, "words": told.words, **asdict(told.claim)} for told in seasons
        ],
    }


def _describe_claim(report: ClaimReport) -> dict[str, Any]:
    return {
        **{name: getattr(report.claim, name) for name in _CLAIM},
        "words": report.words,
        "missing_words": report.missing,
        "updated_at": report.updated_at,
    }


def describe_round(judge_round: Round) -> dict[str, Any]:
    """Describe what is public of a round in any phase."""
    return {
        "number": judge_round.number,
        "season": judge_round.season.name,
        "phase": judge_round.phase,
        "opens_at": judge_round.opens_at,
        "closes_at": judge_round.closes_at,
        "closed_at": judge_round.closed_at,
        "commitment": judge_round.commitment,
        "void_reason": judge_round.void_reason,
    }


def describe_round_report(report: RoundReport) -> dict[str, Any]:
    """Describe a round with all that was revealed of it."""
    revealed = report.revelation
    return {
        **describe_round(report.round),
        "question_count": report.question_count,
        "seats": report.seats,
        "completed": report.completed,
        "rulings": report.rulings,
        "secret": revealed.secret if revealed else None,
        "rules": revealed.rules if revealed else None,
        "scores": describe_scores(report.scores),
        "questions": [_describe_question(question) for question in report.questions],
    }


def describe_scores(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """Describe nodes' results in rounds."""
    return [
        {
            "round": score.round.number,
            "node": score.node.name,
            "model": score.model,
            "arm": score.arm,
            "status": score.status,
            "reason": score.reason,
            "advice": advise(score.reason),
            "score": score.score,
            "interval": None if score.score is None else (score.interval_low, score.interval_high),
            "correct": score.correct,
            "n": score.n,
            "cells": score.cells,
        }
        for score in scores
    ]


def _describe_question(report: QuestionReport) -> dict[str, Any]:
    question = report.question
    return {
        "id": question.pk,
        "position": question.position,
        "dataset": question.dataset,
        "prompt": question.prompt,
        "spec": question.spec,
        "solved": report.solved,
        "seated": report.seated,
    }


def describe_node(report: NodeReport) -> dict[str, Any]:
    """Describe a node: standing, training and participation apart from each other."""
    node = report.node
    return {
        "node": node.name,
        "model": node.model,
        "parameters": node.parameters,
        "arm": node.arm,
        "connected": report.connected,
        "last_seen": node.last_seen,
        "verdict": report.verdict,
        "season": report.season.name if report.season else None,
        "rulings": report.rulings,
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
        "cells": {cell.dataset: cell for cell in report.cells},
        **_describe_lift(report.lift),
    }


def _describe_contribution(report: NodeReport) -> dict[str, Any]:
    part = report.contribution
    return {
        **{name: getattr(part, name) if part else 0 for name in _CONTRIBUTION},
        "delivered_to_others": report.delivered_to_others,
        "training_reward": part.training_reward if part else None,
        "informative_share": part.informative_share if part else None,
        "external_dropped": part.external_dropped if part else {},
    }
