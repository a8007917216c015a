"""Graded answers become one score for each node, and the round closes."""

from datetime import datetime

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q

from judge.models import Answer, Round, Score
from judge.services.rounds import move_round
from judge.stats import wilson_interval


def close_scored_rounds(*, now: datetime) -> list[Round]:
    """Close the rounds whose answers are all graded, or whose time for grading is over."""
    ungraded = Answer.objects.filter(question__round=OuterRef("pk"), score=None)
    due = Round.objects.filter(phase=Round.Phase.SCORING).filter(
        Q(score_by__lte=now) | ~Exists(ungraded)
    )
    return [
        judge_round for judge_round in due.select_related("season") if _close(judge_round, now=now)
    ]


def _close(judge_round: Round, *, now: datetime) -> bool:
    """Close one round and write its scores in the same transaction."""
    with transaction.atomic():
        if not move_round(judge_round, to=Round.Phase.CLOSED, now=now):
            return False
        Score.objects.bulk_create(score_seats(judge_round))
    return True


def score_seats(judge_round: Round) -> list[Score]:
    """Return a score for each seat: unanswered questions are wrong, ungraded answers left out."""
    offered = judge_round.questions.count()
    graded = {
        row["node_id"]: row
        for row in Answer.objects.filter(question__round=judge_round)
        .values("node_id")
        .annotate(
            answered=Count("id"),
            correct=Count("id", filter=Q(solved=True)),
            ungraded=Count("id", filter=Q(score=None)),
        )
        .order_by()
    }
    scores = []
    for seat in judge_round.seats.select_related("node"):
        counts = graded.get(seat.node_id, {"answered": 0, "correct": 0, "ungraded": 0})
        score = Score(round=judge_round, node=seat.node, model=seat.node.model, arm=seat.node.arm)
        _grade(
            score,
            n=offered - counts["ungraded"] if seat.offered_at else 0,
            correct=counts["correct"],
            reason=_reason(
                offered_at=seat.offered_at,
                unanswered=offered - counts["answered"],
                ungraded=counts["ungraded"],
            ),
        )
        scores.append(score)
    return scores


def _grade(score: Score, *, n: int, correct: int, reason: Score.Reason) -> None:
    """Fill in a score of `correct` in `n` questions; none at all means absent."""
    score.reason = reason
    score.n = n
    if n == 0:
        score.status = Score.Status.ABSENT
        return
    score.status = Score.Status.SCORED
    score.correct = correct
    score.score = correct / n
    score.interval_low, score.interval_high = wilson_interval(correct, n)


def _reason(*, offered_at: datetime | None, unanswered: int, ungraded: int) -> Score.Reason:
    if offered_at is None:
        return Score.Reason.NOT_OFFERED
    if ungraded:
        return Score.Reason.UNSCORED
    return Score.Reason.UNANSWERED if unanswered else Score.Reason.NONE
