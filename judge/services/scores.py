"""Services that score each seat of a round from its graded answers, and summarise the scores.

Summaries are stored so that lists of rounds need not add up scores. A node may have taken part in
thousands of rounds with thousands of nodes each. So when a node is quarantined or released from
quarantine, the summaries of its rounds are only marked as stale, and a periodic Celery task
rebuilds them, newest first.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db import transaction
from django.db.models import Q

from judge.engine import Phase
from judge.models import Answer, Enrolment, Round, RoundSummary, Score, Season, Seat
from judge.services.patience import POSTPONED
from judge.statistics.summaries import ScoredResult, summarise, tally_datasets
from swarm_record.stats import effective_n, macro_interval
from swarm_record.stream import pack
from swarm_tasks.cells import summarize_outcomes
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class _AnswerSheet:
    """The positions, from 1, of a node's answered questions and of its solved questions."""

    answered: frozenset[int] = frozenset()
    solved: frozenset[int] = frozenset()


# ---- scores


def write_scores(judge_round: Round) -> None:
    """Write a score for each seat of a round, and the round's summary.

    They replace the earlier scores and summary of the round.
    """
    scores = score_seats(judge_round)
    judge_round.scores.all().delete()
    Score.objects.bulk_create(scores, batch_size=1000)
    store_summary(judge_round, scores)


def score_seats(judge_round: Round) -> list[Score]:
    """Return an unsaved score for each seat; offered questions without an answer count as wrong.

    If an answer to a question could not be graded, the question is excluded for all nodes. This
    does not apply to postponed answers; they count as wrong.

    A question is never excluded for one node alone. Otherwise, a node could hold back its doubtful
    answers until the graders are busy, to have just these questions excluded.
    """
    asked = dict(judge_round.questions.order_by("position").values_list("position", "dataset"))
    ungraded = _find_ungraded(judge_round)
    sheets = _read_sheets(judge_round)
    declined = _find_declined(judge_round)
    seats = judge_round.seats.select_related("node").order_by("node_id")
    labels = _read_labels(judge_round, seats)
    scores = []
    for seat in seats:
        sheet = sheets.get(seat.node_id, _AnswerSheet())
        score = _score_seat(seat, sheet, asked=asked, ungraded=ungraded)
        score.model, score.arm = labels[seat.node_id]
        if seat.node_id in declined:
            score.reason = Score.Reason.DECLINED
        scores.append(score)
    _set_deviations(scores)
    return scores


def _read_labels(judge_round: Round, seats: Iterable[Seat]) -> dict[int, tuple[str, str]]:
    """Return (model, arm) by node id, as in the node's earlier score in this round if it has one.

    Otherwise the present model and arm are returned; they may have changed since the round closed.
    """
    enrolled = Enrolment.objects.filter(season=judge_round.season_id)
    arms = dict(enrolled.values_list("node_id", "arm"))
    labels = {
        seat.node_id: (seat.node.model, arms.get(seat.node_id, seat.node.arm)) for seat in seats
    }
    scored = judge_round.scores.values_list("node_id", "model", "arm")
    return labels | {node_id: (model, arm) for node_id, model, arm in scored}


def _read_sheets(judge_round: Round) -> dict[int, _AnswerSheet]:
    """Return the nodes' answer sheets by node id, read in one query with one row per node."""
    position = "question__position"
    rows = (
        Answer.objects.filter(question__round=judge_round)
        .order_by()
        .values("node_id")
        .annotate(
            answered=ArrayAgg(position, default=[]),
            right=ArrayAgg(position, filter=Q(solved=True), default=[]),
        )
    )
    return {
        row["node_id"]: _AnswerSheet(frozenset(row["answered"]), frozenset(row["right"]))
        for row in rows
    }


def _find_declined(judge_round: Round) -> set[int]:
    """Return the ids of nodes that declined: another node of their owner got the questions.

    These nodes were invited but did not request the questions. Their owner knew the questions and
    could choose whether the nodes answer them. If the round has scores already, the nodes that
    declined according to the scores are returned, so that a later change of owner has no effect
    when the round is recomputed.
    """
    if judge_round.scores.exists():
        kept = judge_round.scores.filter(reason=Score.Reason.DECLINED)
        return set(kept.values_list("node_id", flat=True))
    seats = judge_round.seats.exclude(node__owner=None)
    owners = seats.exclude(offered_at=None).values("node__owner")
    absent = seats.filter(offered_at=None, came_late=False, node__owner__in=owners)
    return set(absent.values_list("node_id", flat=True))


def _find_ungraded(judge_round: Round) -> set[int]:
    """Return the positions of questions with an answer that could not be graded in time.

    Postponed answers are ignored here. They count as wrong, because grading them, or their node's
    other answers, took long.
    """
    ungraded = Answer.objects.filter(question__round=judge_round, score=None).exclude(
        verdict=POSTPONED
    )
    return set(ungraded.values_list("question__position", flat=True).distinct())


def _score_seat(
    seat: Seat, sheet: _AnswerSheet, *, asked: Mapping[int, str], ungraded: Set[int]
) -> Score:
    """Return the score of one seat; its model, arm and deviation are left for the caller to set.

    `asked` maps the positions of the round's questions to their datasets. Questions at the
    positions in `ungraded` are excluded for all nodes.
    """
    score = Score(round_id=seat.round_id, node=seat.node)
    score.reason = _reason(seat, sheet, asked, ungraded)
    score.status = Score.Status.ABSENT
    if seat.offered_at is None:
        return score
    outcomes = [None if at in ungraded else at in sheet.solved for at in asked]
    summary = summarize_outcomes(zip(asked.values(), outcomes, strict=True))
    if summary.score is None:
        return score
    score.status = Score.Status.SCORED
    score.correct, score.n, score.score = summary.correct, summary.n, summary.score
    score.cells = summary.cells
    score.answered = pack(np.array([outcome is not None for outcome in outcomes]))
    score.solved = pack(np.array([bool(outcome) for outcome in outcomes]))
    score.interval_low, score.interval_high = macro_interval(
        summary.score, effective_n(summary.cells)
    )
    return score


def _reason(
    seat: Seat, sheet: _AnswerSheet, asked: Mapping[int, str], ungraded: Set[int]
) -> Score.Reason:
    if seat.offered_at is None:
        return Score.Reason.CAME_LATE if seat.came_late else Score.Reason.NOT_OFFERED
    if ungraded:
        return Score.Reason.UNSCORED
    return Score.Reason.UNANSWERED if len(sheet.answered) < len(asked) else Score.Reason.NONE


def _set_deviations(scores: Iterable[Score]) -> None:
    """Set each trained node's deviation from the mean score of all trained nodes of its model."""
    by_model: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        if score.score is not None and score.arm != Node.Arm.BASE:
            by_model[score.model].append(score)
    for group in by_model.values():
        mean = float(np.mean([score.score for score in group]))
        for score in group:
            score.deviation = float(score.score or 0.0) - mean


# ---- summaries


def summarise_season(season: Season) -> None:
    """Store the summaries of a season's closed rounds, after scores were written in bulk."""
    for judge_round in season.rounds.filter(phase=Phase.CLOSED).iterator():
        store_summary(judge_round, list(judge_round.scores.all()))


def store_summary(judge_round: Round, scores: Sequence[Score]) -> None:
    """Store or replace a round's summary, given all of its scores."""
    quarantined = set(Node.objects.filter(quarantined=True).values_list("pk", flat=True))
    results = [
        ScoredResult(
            score.model,
            score.arm,
            score.score,
            bytes(score.answered),
            bytes(score.solved),
            competes=score.node_id not in quarantined,
        )
        for score in scores
        if score.score is not None
    ]
    statistics = summarise(results, questions=judge_round.questions.count())
    competing = [score for score in scores if score.node_id not in quarantined]
    RoundSummary.objects.update_or_create(
        round=judge_round,
        defaults={
            "seats": len(scores),
            "datasets": tally_datasets((score.arm, score.cells) for score in competing),
            "stale": False,
            **asdict(statistics),
        },
    )


def mark_stale(node: Node) -> None:
    """Mark the summaries of a node's rounds as stale; must be called in a transaction.

    If the transaction also calls `lock_standings`, it must do so first: this function locks rounds,
    and other transactions lock the standings before a round, so the opposite order could deadlock.
    """
    # A round that is closing now has read the old state; once we get its lock, its summary exists
    # and is marked. A round that closes later waits for us and reads the new state.
    unfinished = Round.objects.filter(phase__in=[Phase.OPEN, Phase.SCORING])
    list(unfinished.select_for_update(no_key=True).values_list("pk"))
    RoundSummary.objects.filter(round__scores__node=node).update(stale=True)


def rebuild_stale_summary() -> bool:
    """Rebuild the newest stale summary that no worker has locked; return whether there was one."""
    with transaction.atomic():
        stale = RoundSummary.objects.filter(stale=True).select_related("round")
        free = stale.select_for_update(of=("self",), skip_locked=True)
        summary = free.order_by("-round_id").first()
        if summary is None:
            return False
        store_summary(summary.round, list(summary.round.scores.all()))
    return True
