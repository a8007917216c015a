"""Reads: seasons and rounds as nodes may see them, and scores as pages show them."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Coalesce

from judge.engine import Phase
from judge.models import (
    Answer,
    Comparison,
    Counted,
    Enrolment,
    Round,
    RoundSummary,
    Ruling,
    Score,
    Season,
    Seat,
    Standing,
    Window,
)
from swarm_protocol.messages import RoundInfo, RoundPhase, SeasonInfo, TaskChoice
from swarm_record.answers import AnswerEntry
from swarm_record.results import ResultLine, ResultsHead, encode_results
from swarm_web.nodes.models import Node

# The wire's names of the phases and of who assigns arms.
_PHASES: dict[Phase, RoundPhase] = {
    Phase.SCHEDULED: "scheduled",
    Phase.OPEN: "open",
    Phase.SCORING: "scoring",
    Phase.CLOSED: "closed",
    Phase.VOID: "void",
}
WINDOWS = tuple(window.value for window in Window)


# ---- seasons and rounds


def running_season() -> Season | None:
    """Return the season that runs now, paused or not."""
    return Season.objects.filter(state=Season.State.RUNNING).first()


def shown_season() -> Season | None:
    """Return the season that pages show: the running one, else the latest that ran."""
    started = Season.objects.exclude(state=Season.State.DRAFT)
    return running_season() or started.order_by("-started_at").first()


def started_seasons() -> QuerySet[Season]:
    """Return the seasons that run or ran, newest first."""
    return Season.objects.exclude(state=Season.State.DRAFT).order_by("-started_at", "-pk")


def seasons_with_books(*, now: datetime) -> QuerySet[Season]:
    """Return the seasons whose windows may still change: a week after the last round none does.

    Besides those with closed rounds that are not booked: an update may want its books anew.
    """
    lately = Q(closed_at__gt=now - timedelta(days=8))
    booked = Counted.objects.filter(round=OuterRef("pk"), window=Window.SEASON)
    closed = Round.objects.filter(season=OuterRef("pk"), phase=Phase.CLOSED)
    wanting = Exists(closed.filter(lately | ~Exists(booked)))
    started = Season.objects.exclude(state=Season.State.DRAFT)
    return started.filter(Q(state=Season.State.RUNNING) | wanting)


def minimum_client(season: Season | None) -> str:
    """Return the oldest version of the client that is served."""
    return (season.minimum_client if season else "") or str(settings.MINIMUM_CLIENT_VERSION)


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
        assignment="coin" if season.assignment == Season.Assignment.COIN else "choice",
        system_prompt=season.system_prompt,
        isolated_publish=season.isolated_publish,
        batch=season.batch,
        answers=season.answer_rules,
        sampling=season.sampling,
    )


def current_round(season: Season) -> Round | None:
    """Return the round that nodes and visitors look at: open, being scored, or next."""
    return _most_urgent(season.rounds.exclude(phase__in=[Phase.CLOSED, Phase.VOID]))


def round_in_progress() -> Round | None:
    """Return a round that is open or being scored: a season that ended finishes its last one."""
    rounds = Round.objects.select_related("season")
    return _most_urgent(rounds.filter(phase__in=[Phase.OPEN, Phase.SCORING]))


def _most_urgent(unfinished: QuerySet[Round]) -> Round | None:
    rank = {Phase.OPEN: 0, Phase.SCORING: 1, Phase.SCHEDULED: 2}
    return min(
        unfinished.order_by("opens_at")[:16],
        key=lambda r: (rank[Phase(r.phase)], r.opens_at),
        default=None,
    )


def undrawn_rounds() -> QuerySet[Round]:
    """Return the rounds whose questions wait for a public beacon, in the order of their numbers."""
    waiting = Round.objects.filter(
        phase=Phase.SCHEDULED, rules__has_key="beacon", beacon__isnull=True
    )
    return waiting.order_by("number")


def count_questions(judge_round: Round) -> int:
    """Return how many questions a round asks, also before they are drawn."""
    if judge_round.is_drawn:
        return judge_round.questions.count()
    return int(judge_round.rules["questions"])


def describe_round(judge_round: Round, *, questions: int | None = None) -> RoundInfo:
    """Return a round as nodes are told; knowing how many `questions` it has spares a query."""
    return RoundInfo(
        number=judge_round.number,
        phase=_PHASES[Phase(judge_round.phase)],
        opens_at=judge_round.opens_at.isoformat(),
        closes_at=judge_round.closes_at.isoformat(),
        questions=count_questions(judge_round) if questions is None else questions,
        commitment=judge_round.commitment,
    )


def listed_rounds(season: Season | None) -> QuerySet[Round]:
    """Return the rounds of a season, or of all, newest first, with seasons and summaries."""
    rounds = Round.objects.select_related("season", "summary").order_by("-number")
    return rounds.filter(season=season) if season else rounds


def summaries_in(season: Season, *, rounds: int) -> list[tuple[int, Any]]:
    """Return number and groups (judge.summaries.Group) of the last closed rounds, oldest first."""
    closed = RoundSummary.objects.filter(round__season=season, round__phase=Phase.CLOSED)
    latest = closed.order_by("-round__number").values_list("round__number", "groups")
    return list(latest[:rounds])[::-1]


def rounds_with_turnout() -> QuerySet[Round]:
    """Return all rounds, newest first, with `seated` and `scored` counts of nodes."""
    seats = Seat.objects.filter(round=OuterRef("pk"))
    scores = Score.objects.filter(round=OuterRef("pk"), status=Score.Status.SCORED)
    return (
        Round.objects.select_related("season")
        .annotate(seated=_count(seats), scored=_count(scores))
        .order_by("-number")
    )


def _count(rows: QuerySet[Seat] | QuerySet[Score]) -> Coalesce:
    """Return how many rows a round has; two joins would multiply them with each other."""
    counted = rows.order_by().values("round").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)


def answers_to_grade() -> QuerySet[Answer]:
    """Return the answers that wait for their verdict.

    What its round left out when it closed or became void waits no longer: only a recompute, which
    does not ask this, gives it one.
    """
    graded = [Phase.OPEN, Phase.SCORING]
    return Answer.objects.filter(score=None, question__round__phase__in=graded)


def rulings_about(judge_round: Round) -> QuerySet[Ruling]:
    """Return what the operator decided about a round, oldest first."""
    return judge_round.rulings.order_by("made_at")


# ---- scores


def standings_in(season: Season, window: str) -> QuerySet[Standing]:
    """Return a window's lines as leaderboards list them, quarantined nodes included."""
    lines = Standing.objects.filter(season=season, window=window)
    return lines.select_related("node").order_by("place")


def standings_edition(season: Season, window: str) -> int:
    """Return a number that changes whenever a window's lines are drawn up anew; 0 without any."""
    first = Standing.objects.filter(season=season, window=window).order_by("place")
    return first.values_list("pk", flat=True).first() or 0


def counted_rounds(season: Season, window: str) -> int:
    """Return how many rounds a window counts."""
    return Counted.objects.filter(window=window, round__season=season).count()


def recent_scores(season: Season, nodes: Iterable[str], *, rounds: int) -> dict[str, list[float]]:
    """Return nodes' scores by name in those of the season's last closed rounds that have one.

    Oldest first, and in one query.
    """
    closed = Round.objects.filter(season=season, phase=Phase.CLOSED, closed_at__isnull=False)
    scores = Score.objects.filter(
        round__in=closed.order_by("-closed_at")[:rounds],
        node__name__in=list(nodes),
    )
    found: defaultdict[str, list[float]] = defaultdict(list)
    for node, score in scores.order_by("round__number").values_list("node__name", "score"):
        if score is not None:
            found[node].append(score)
    return dict(found)


def comparisons_in(season: Season) -> QuerySet[Comparison]:
    """Return the judge's claims about the arms, a row for each model."""
    return Comparison.objects.filter(season=season).order_by("model")


def differences_by_model() -> dict[str, dict[str, float]]:
    """Return, by model and season, swarm - isolated in ended seasons where a coin chose."""
    ended = Comparison.objects.filter(
        season__state=Season.State.ENDED, season__assignment=Season.Assignment.COIN
    )
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for model, season, claim in ended.order_by("model", "season__ended_at").values_list(
        "model", "season__name", "claim"
    ):
        if claim["missing"] is None:
            found[model][season] = claim["difference"]
    return dict(found)


def coin_share(season: Season) -> tuple[int, int]:
    """Return how many of the nodes that train had their arm drawn by coin, and of how many."""
    enrolled = Enrolment.objects.filter(season=season).exclude(arm=Node.Arm.BASE)
    counts = enrolled.aggregate(
        coin=Count("pk", filter=Q(assignment=Season.Assignment.COIN)), everybody=Count("pk")
    )
    return counts["coin"], counts["everybody"]


def score_history(season: Season, node_ids: Iterable[int], *, rounds: int) -> QuerySet[Score]:
    """Return the scores of some nodes in the season's last closed rounds, oldest first."""
    latest = season.rounds.filter(phase=Phase.CLOSED).order_by("-number")
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
    closed = node.scores.filter(round__season=season, round__phase=Phase.CLOSED)
    return closed.select_related("round").order_by("-round__number")


def results_of_node(node: Node) -> QuerySet[Score]:
    """Return a node's results in the closed rounds of all seasons, newest first."""
    closed = Score.objects.filter(node=node, round__phase=Phase.CLOSED)
    return closed.select_related("round", "node").order_by("-round__number")


def exported_scores() -> QuerySet[Score]:
    """Return every score of closed rounds in the order of the reward downloads."""
    return (
        Score.objects.filter(round__phase=Phase.CLOSED)
        .select_related("round__season", "node")
        .order_by("round__number", "node__name")
    )


# ---- the public record


class _TextHash(Func):
    """SHA-256 of a text as UTF-8, in hex, so that texts need not leave the database."""

    template = "ENCODE(SHA256(CONVERT_TO(%(expressions)s, 'UTF8')), 'hex')"
    output_field = TextField()


def read_entries(judge_round: Round) -> list[AnswerEntry]:
    """Return all answers of a round as its Merkle tree has them, in any order."""
    rows = Answer.objects.filter(question__round=judge_round).values_list(
        "node__name",
        "question__position",
        "question_id",
        _TextHash(F("text")),
        "key__public",
        "signature",
    )
    return [
        AnswerEntry(node, position, str(question), digest, key or "", signature)
        for node, position, question, digest, key, signature in rows
    ]


def read_result_lines(judge_round: Round) -> list[bytes]:
    """Return a closed round's results as they are published and fixed, without line feeds."""
    datasets = judge_round.questions.order_by("position").values_list("dataset", flat=True)
    head = ResultsHead(judge_round.number, judge_round.season.name, list(datasets))
    scores = judge_round.scores.select_related("node")
    return encode_results(head, map(_describe_result, scores))


def _describe_result(score: Score) -> ResultLine:
    low, high = score.interval_low, score.interval_high
    return ResultLine(
        node=score.node.name,
        model=score.model,
        arm=score.arm,
        status="scored" if score.status == Score.Status.SCORED else "absent",
        reason=score.reason,
        correct=score.correct,
        n=score.n,
        cells=score.cells,
        score=score.score,
        interval=None if low is None or high is None else (low, high),
        answered=bytes(score.answered).hex(),
        solved=bytes(score.solved).hex(),
    )
