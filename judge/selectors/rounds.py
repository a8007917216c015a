"""Queries for rounds, for the answers to grade, and for the rulings about a round."""

from typing import Any, cast

from django.db.models import Case, Count, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from judge.engine import Phase
from judge.models import (
    Answer,
    Round,
    RoundSummary,
    Ruling,
    Score,
    Season,
    Seat,
)
from swarm_protocol.messages import RoundInfo, RoundPhase


def current_round(season: Season) -> Round | None:
    """Return the open round, else one being scored, else the next scheduled one, else None."""
    return _most_urgent(season.rounds.exclude(phase__in=[Phase.CLOSED, Phase.VOID]))


def round_in_progress() -> Round | None:
    """Return an open round of any season, else one that is being scored, else None."""
    rounds = Round.objects.select_related("season")
    return _most_urgent(rounds.filter(phase__in=[Phase.OPEN, Phase.SCORING]))


def _most_urgent(unfinished: QuerySet[Round]) -> Round | None:
    rank = Case(When(phase=Phase.OPEN, then=0), When(phase=Phase.SCORING, then=1), default=2)
    return unfinished.order_by(rank, "opens_at").first()


def undrawn_rounds() -> QuerySet[Round]:
    """Return the scheduled rounds that wait for a beacon value, in the order of their numbers."""
    waiting = Round.objects.filter(
        phase=Phase.SCHEDULED, rules__has_key="beacon", beacon__isnull=True
    )
    return waiting.order_by("number")


def count_questions(judge_round: Round) -> int:
    """Return the number of questions of a round, even before they are drawn."""
    if judge_round.is_drawn:
        return judge_round.questions.count()
    return int(judge_round.rules["questions"])


def describe_round(judge_round: Round, *, questions: int | None = None) -> RoundInfo:
    """Return a round as a message for nodes; giving its number of `questions` saves a query."""
    return RoundInfo(
        number=judge_round.number,
        phase=cast(RoundPhase, judge_round.phase),
        opens_at=judge_round.opens_at.isoformat(),
        closes_at=judge_round.closes_at.isoformat(),
        questions=count_questions(judge_round) if questions is None else questions,
        commitment=judge_round.commitment,
    )


def listed_rounds(season: Season | None) -> QuerySet[Round]:
    """Return the rounds of a season, or of all seasons if it is None, newest first.

    Each round's season and summary are loaded with it.
    """
    rounds = Round.objects.select_related("season", "summary").order_by("-number")
    return rounds.filter(season=season) if season else rounds


def summaries_in(season: Season, *, rounds: int) -> list[tuple[int, Any]]:
    """Return (round number, groups) for the season's last `rounds` closed rounds, oldest first.

    `groups` are ArmGroup structs (`judge.statistics.summaries`) as dicts.
    """
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
    """Return an expression for how many of these rows a round has.

    It is a subquery, because joins with both tables would multiply the rows.
    """
    counted = rows.order_by().values("round").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)


def answers_to_grade() -> QuerySet[Answer]:
    """Return the answers without a verdict in rounds that are open or being scored.

    Postponed answers are included. They time out when the round closes. If another answer has no
    verdict when the round closes, it gets one only if the round is recomputed. In a void round,
    answers without a verdict never get one.
    """
    graded = [Phase.OPEN, Phase.SCORING]
    return Answer.objects.filter(score=None, question__round__phase__in=graded)


def rulings_about(judge_round: Round) -> QuerySet[Ruling]:
    """Return the operator's rulings about a round, oldest first."""
    return judge_round.rulings.order_by("made_at")
