"""A node's part in the round that goes on: which questions it was offered, and what it answered."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from judge.models import Answer, Question, Round, Season, Seat
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class Turn:
    """A node's seat in a round that is open or else being scored.

    `offered`: it asked for the questions, and `answered` so many of them. `came_late`: it takes no
    part. `half_over`: half of the answering time is over.
    """

    number: int
    is_open: bool
    offered: bool
    came_late: bool
    answered: int
    questions: int
    half_over: bool

    @property
    def words(self) -> str:
        """What a node that takes part did in the round so far, as a sentence."""
        number = {"number": self.number}
        if not self.offered:
            return _("It has not requested the questions of round %(number)s yet.") % number
        told = _("It has answered %(answered)s of %(questions)s questions of round %(number)s.")
        return told % {**number, "answered": self.answered, "questions": self.questions}


def read_turn(node: Node, season: Season, *, now: datetime) -> Turn | None:
    """Return a node's part in the season's round that goes on, in one query; None without any."""
    # The one that opened last: at most one is open, and those being scored opened before it.
    going_on = season.rounds.filter(phase__in=[Round.Phase.OPEN, Round.Phase.SCORING])
    answers = Answer.objects.filter(node=OuterRef("node"), question__round=OuterRef("round"))
    questions = Question.objects.filter(round=OuterRef("round"))
    seats = Seat.objects.filter(
        node=node, round=Subquery(going_on.order_by("-opens_at").values("pk")[:1])
    )
    found = seats.values_list(
        *("round__number", "round__phase", "offered_at", "came_late"),
        _count(answers, by="node"),
        _count(questions, by="round"),
        *("round__opens_at", "round__closes_at"),
    ).first()
    if found is None:
        return None
    number, phase, offered_at, came_late, answered, asked, opens_at, closes_at = found
    return Turn(
        number=number,
        is_open=phase == Round.Phase.OPEN,
        offered=offered_at is not None,
        came_late=came_late,
        answered=answered,
        questions=asked,
        half_over=now >= opens_at + (closes_at - opens_at) / 2,
    )


def _count(rows: QuerySet[Answer] | QuerySet[Question], *, by: str) -> Coalesce:
    counted = rows.order_by().values(by).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)
