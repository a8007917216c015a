"""Reads: seasons and rounds as nodes may see them, and scores as pages show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db.models import Count, Max, Q, QuerySet, Sum

from judge.models import Question, Round, Score, Season
from judge.stats import Interval, rank_ranges, wilson_interval
from swarm_protocol.messages import RoundInfo, RoundPhase, SeasonInfo, TaskChoice
from swarm_web.nodes.models import Node

# Windows of the leaderboard; `round` is the last closed round, `season` all of its rounds.
WINDOWS = ("season", "round", "24h", "7d")
# The wire's names of the phases.
_PHASES: dict[Round.Phase, RoundPhase] = {
    Round.Phase.SCHEDULED: "scheduled",
    Round.Phase.OPEN: "open",
    Round.Phase.SCORING: "scoring",
    Round.Phase.CLOSED: "closed",
    Round.Phase.VOID: "void",
}
_SPANS = {"24h": timedelta(hours=24), "7d": timedelta(days=7)}


# ---- seasons and rounds


def running_season() -> Season | None:
    """Return the season that runs now, paused or not."""
    return Season.objects.filter(state=Season.State.RUNNING).first()


def shown_season() -> Season | None:
    """Return the season that pages show: the running one, else the latest that ran."""
    started = Season.objects.exclude(state=Season.State.DRAFT)
    return running_season() or started.order_by("-started_at").first()


def task_choices(tasks: object) -> list[TaskChoice]:
    """Read a season's stored task mix. Raises msgspec.ValidationError."""
    return msgspec.convert(tasks, list[TaskChoice])


def describe_season(season: Season) -> SeasonInfo:
    """Return the rules that nodes are told."""
    return SeasonInfo(
        name=season.name,
        seed=season.seed,
        generator=season.generator,
        tasks=task_choices(season.tasks),
        completions=season.completions,
        local=season.local,
        external=season.external,
        max_new_tokens=season.max_new_tokens,
        temperature=season.temperature,
    )


def current_round(season: Season) -> Round | None:
    """Return the round that nodes and visitors look at: open, being scored, or next."""
    unfinished = season.rounds.exclude(phase__in=[Round.Phase.CLOSED, Round.Phase.VOID])
    rank = {Round.Phase.OPEN: 0, Round.Phase.SCORING: 1, Round.Phase.SCHEDULED: 2}
    candidates = unfinished.annotate(question_count=Count("questions")).order_by("opens_at")[:16]
    return min(candidates, key=lambda r: (rank[Round.Phase(r.phase)], r.opens_at), default=None)


def describe_round(judge_round: Round) -> RoundInfo:
    """Return a round as nodes are told; annotate `question_count` to spare a query."""
    count = getattr(judge_round, "question_count", None)
    return RoundInfo(
        number=judge_round.number,
        phase=_PHASES[Round.Phase(judge_round.phase)],
        opens_at=judge_round.opens_at.isoformat(),
        closes_at=judge_round.closes_at.isoformat(),
        questions=judge_round.questions.count() if count is None else count,
    )


def questions_of(judge_round: Round) -> QuerySet[Question]:
    """Return a round's questions in order."""
    return judge_round.questions.order_by("position")


def rounds_with_turnout() -> QuerySet[Round]:
    """Return all rounds, newest first, with `seated` and `scored` counts of nodes."""
    scored = Count("scores", filter=Q(scores__status=Score.Status.SCORED), distinct=True)
    return (
        Round.objects.select_related("season")
        .annotate(seated=Count("seats", distinct=True), scored=scored)
        .order_by("-number")
    )


# ---- scores


@dataclass(frozen=True)
class ScoreRow:
    """A node's judge score over a window: a fraction in [0, 1] of `n` questions in `rounds`.

    `rank` is (best, worst): nodes that cannot be told apart share it.
    """

    node_id: int
    rank: tuple[int, int]
    correct: int
    n: int
    rounds: int
    score: float
    interval: Interval


def scores_in_window(season: Season, window: str, *, now: datetime) -> QuerySet[Score]:
    """Return the scores that count in a window of the season."""
    scores = Score.objects.filter(
        round__season=season, round__phase=Round.Phase.CLOSED, status=Score.Status.SCORED
    )
    if window == "round":
        closed = season.rounds.filter(phase=Round.Phase.CLOSED)
        return scores.filter(round__number=closed.aggregate(last=Max("number"))["last"])
    if window in _SPANS:
        return scores.filter(round__closed_at__gt=now - _SPANS[window])
    return scores


def rank_nodes(season: Season, window: str, *, now: datetime) -> list[ScoreRow]:
    """Return one row for each node with a score in the window, best first."""
    totals = (
        scores_in_window(season, window, now=now)
        .values("node_id")
        .annotate(all_correct=Sum("correct"), all_n=Sum("n"), rounds=Count("id"))
        .order_by("node_id")
    )
    rows = list(totals)
    intervals = [wilson_interval(row["all_correct"], row["all_n"]) for row in rows]
    ranked = [
        ScoreRow(
            node_id=row["node_id"],
            rank=rank,
            correct=row["all_correct"],
            n=row["all_n"],
            rounds=row["rounds"],
            score=row["all_correct"] / row["all_n"],
            interval=interval,
        )
        for row, interval, rank in zip(rows, intervals, rank_ranges(intervals), strict=True)
    ]
    return sorted(ranked, key=lambda row: (row.rank, -row.score, row.node_id))


def score_history(season: Season, node_ids: Iterable[int], *, rounds: int) -> QuerySet[Score]:
    """Return the scores of some nodes in the season's last closed rounds, oldest first."""
    latest = season.rounds.filter(phase=Round.Phase.CLOSED).order_by("-number")
    numbers = list(latest.values_list("number", flat=True)[:rounds])
    return (
        Score.objects.filter(
            node_id__in=list(node_ids), round__number__in=numbers, status=Score.Status.SCORED
        )
        .select_related("round", "node")
        .order_by("round__number")
    )


def scores_of_node(node: Node, season: Season) -> QuerySet[Score]:
    """Return a node's results in the season's closed rounds, newest first, absences included."""
    closed = Score.objects.filter(node=node, round__season=season, round__phase=Round.Phase.CLOSED)
    return closed.select_related("round", "node").order_by("-round__number")


def exported_scores() -> QuerySet[Score]:
    """Return every score of closed rounds in the order of the reward downloads."""
    return (
        Score.objects.filter(round__phase=Round.Phase.CLOSED)
        .select_related("round__season", "node")
        .order_by("round__number", "node__name")
    )
