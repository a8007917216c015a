"""Bodies of answers about rounds."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from judge.models import Answer, Round, Score
from swarm_web.dashboard.reports.reasons import advise
from swarm_web.dashboard.reports.round import QuestionReport, RoundReport

# What is copied as it is.
_ANSWER = ("text", "finish_reason", "received_at", "latency_ms", "score", "solved", "verdict")


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
        "answers_root": judge_round.answers_root,
        "results_root": judge_round.results_root,
    }


def describe_round_report(report: RoundReport) -> dict[str, Any]:
    """Describe a round with all that was revealed of it."""
    revealed = report.revelation
    return {
        **describe_round(report.round),
        "question_count": report.question_count,
        "seen_before": report.seen_before,
        "seats": report.seats,
        "completed": report.completed,
        "rulings": report.rulings,
        "beacon": asdict(report.beacon) if report.beacon else None,
        "secret": revealed.secret if revealed else None,
        "rules": revealed.rules if revealed else None,
        "scores": describe_scores(report.scores),
        "questions": [describe_question(told) for told in report.questions],
    }


def describe_scores(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """Describe nodes' results in rounds."""
    return [describe_score(score) for score in scores]


def describe_score(score: Score) -> dict[str, Any]:
    """Describe a node's result in a round."""
    return {
        "round": score.round.number,
        "node": score.node.name,
        "model": score.model,
        "arm": score.arm,
        "status": score.status,
        "reason": score.reason,
        "quarantined": score.node.quarantined,
        "advice": advise(score.reason),
        "score": score.score,
        "interval": None if score.score is None else (score.interval_low, score.interval_high),
        "correct": score.correct,
        "n": score.n,
        "cells": score.cells,
    }


def describe_question(told: QuestionReport) -> dict[str, Any]:
    """Describe a revealed question."""
    question = told.question
    return {
        "id": question.pk,
        "position": question.position,
        "dataset": question.dataset,
        "prompt": question.prompt,
        "spec": question.spec,
        "solved": told.solved,
        "counted": told.counted,
        "seated": told.seated,
    }


def describe_answer(answer: Answer) -> dict[str, Any]:
    """Describe a node's answer to a question of a closed round."""
    return {"node": answer.node.name, **{name: getattr(answer, name) for name in _ANSWER}}
