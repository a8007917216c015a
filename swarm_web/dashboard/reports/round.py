"""A round's report. Until the round has closed it holds no question, spec, answer or score."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
from django.db.models import Count, F, QuerySet

from judge.models import Question, Round, RoundSummary, Score
from judge.repeats import count_seen_before
from judge.selectors import count_questions, rulings_about
from swarm_tasks.beacon import Beacon
from swarm_web.dashboard.reports.rulings import RulingLine, describe_rulings
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class QuestionReport:
    """A revealed question: `solved` of the `counted` nodes for which it counts were right.

    It does not count for those of the `seated` nodes whose answer could not be graded in time.
    """

    question: Question
    solved: int
    counted: int
    seated: int

    @property
    def index(self) -> int:
        """The index that, with the season's seed, makes the question again."""
        return int(self.question.spec["index"])

    @property
    def share(self) -> float | None:
        """The share of nodes that solved it, as a fraction of one; None if it counts for none."""
        return self.solved / self.counted if self.counted else None


@dataclass(frozen=True)
class Revelation:
    """What decided a round's questions: with it anybody can draw them again."""

    secret: str
    rules: dict[str, Any]


@dataclass(frozen=True)
class BeaconReport:
    """The value of the public beacon that is mixed with a round's secret; null until it is there.

    `round` is the beacon's own, whose value was not published before `emitted_at`.
    """

    chain: str
    round: int
    emitted_at: datetime
    randomness: str | None
    signature: str | None


@dataclass(frozen=True)
class Lead:
    """The best result of the nodes that compete: `nodes` have it, and `node` is one of them."""

    node: str
    correct: int
    n: int
    score: float
    nodes: int


@dataclass(frozen=True)
class RoundReport:
    """A round, and after it closed its questions.

    `seen_before` of its questions the season had asked in earlier rounds.
    A round that was closed before it became void keeps its revealed questions and loses its
    scores and its lead.
    """

    round: Round
    question_count: int
    seen_before: int
    seats: int
    completed: int
    rulings: list[RulingLine]
    revelation: Revelation | None = None
    questions: list[QuestionReport] = field(default_factory=list)
    lead: Lead | None = None

    @cached_property
    def beacon(self) -> BeaconReport | None:
        """The beacon that the round's rules name, if they do."""
        if "beacon" not in self.round.rules:
            return None
        named = msgspec.convert(self.round.rules["beacon"], Beacon)
        value = self.round.beacon or {}
        return BeaconReport(
            named.chain,
            named.round,
            named.emitted_at,
            randomness=value.get("randomness"),
            signature=value.get("signature"),
        )

    @cached_property
    def scores(self) -> list[Score]:
        """All scores, best first, for readers who want thousands; pages read `Sheet`s."""
        return list(scores_of(self.round).defer("answered", "solved"))


def scores_of(judge_round: Round) -> QuerySet[Score]:
    """Return the scores of a round that counts, best first, and absent nodes last."""
    if judge_round.phase != Round.Phase.CLOSED:
        return judge_round.scores.none()
    return ordered_scores(judge_round)


def ordered_scores(judge_round: Round) -> QuerySet[Score]:
    """Return the scores of a round in the order of the index `scores_best_first`."""
    best_first = F("score").desc(nulls_last=True)
    return judge_round.scores.select_related("node").order_by(best_first, "node_id")


def read_round(judge_round: Round) -> RoundReport:
    """Read a round's report in a constant number of queries."""
    turnout = judge_round.seats.aggregate(seats=Count("pk"), completed=Count("completed_at"))
    rulings = describe_rulings(rulings_about(judge_round))
    seen_before = count_seen_before(judge_round)
    if not judge_round.is_revealed:
        return RoundReport(
            judge_round,
            question_count=count_questions(judge_round),
            seen_before=seen_before,
            rulings=rulings,
            **turnout,
        )
    tell = question_teller(judge_round)
    questions = [tell(question) for question in judge_round.questions.order_by("position")]
    return RoundReport(
        judge_round,
        question_count=len(questions),
        seen_before=seen_before,
        rulings=rulings,
        revelation=Revelation(secret=bytes(judge_round.secret).hex(), rules=judge_round.rules),
        questions=questions,
        lead=_find_lead(judge_round),
        **turnout,
    )


def question_teller(judge_round: Round) -> Callable[[Question], QuestionReport]:
    """Read the tallies of a revealed round once, and return what tells its questions with them."""
    summary = RoundSummary.objects.filter(round=judge_round).first()

    def tell(question: Question) -> QuestionReport:
        if summary is None:
            return QuestionReport(question, solved=0, counted=0, seated=0)
        solved, counted = summary.tallies[question.position - 1]
        return QuestionReport(question, solved, counted, seated=summary.scored)

    return tell


def _find_lead(judge_round: Round) -> Lead | None:
    competing = scores_of(judge_round).filter(node__quarantined=False).exclude(arm=Node.Arm.BASE)
    best = competing.values_list("node__name", "correct", "n", "score").first()
    # Those who gave no answer stand last.
    if best is None or (score := best[3]) is None:
        return None
    return Lead(*best[:3], score, nodes=competing.filter(score=score).count())
