"""A round's report. Until the round has closed it holds no question, spec, answer or score."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F, Max

from judge.models import Answer, Question, Round, Score
from judge.selectors import rulings_about
from swarm_web.dashboard.reports.rulings import RulingLine, describe_rulings
from swarm_web.nodes.models import Node

# The page shows the answers of this many nodes, best first; the downloads have all of them.
SHOWN_NODES = 50


@dataclass(frozen=True)
class QuestionReport:
    """A revealed question with the shown nodes' answers; None where a node gave none."""

    question: Question
    answers: list[tuple[Node, Answer | None]]
    solved: int
    seated: int

    @property
    def index(self) -> int:
        """The index that, with the season's seed, makes the question again."""
        return int(self.question.spec["index"])


@dataclass(frozen=True)
class Revelation:
    """What decided a round's questions: with it anybody can draw them again."""

    secret: str
    rules: dict[str, Any]


@dataclass(frozen=True)
class RoundReport:
    """A round, and after it closed its scores (best first) and questions.

    A round that was closed before it became void keeps its revealed questions and loses its
    scores. `latencies` maps nodes' keys to the time in ms until their last answer.
    """

    round: Round
    question_count: int
    seats: int
    completed: int
    rulings: list[RulingLine]
    revelation: Revelation | None = None
    scores: list[Score] = field(default_factory=list)
    latencies: dict[int, int] = field(default_factory=dict)
    questions: list[QuestionReport] = field(default_factory=list)

    @property
    def leaders(self) -> list[Score]:
        """The scores that none is better than, of nodes that compete."""
        competing = [
            score
            for score in self.scores
            if score.score is not None and score.arm != Node.Arm.BASE and not score.node.quarantined
        ]
        return [score for score in competing if score.score == competing[0].score]

    @property
    def results(self) -> list[tuple[Score, int | None]]:
        """The scores, each with the time in ms until the node's last answer."""
        return [(score, self.latencies.get(score.node_id)) for score in self.scores]


def is_revealed(judge_round: Round) -> bool:
    """Tell whether a round's questions, answers and secret are public: once it has closed."""
    if judge_round.phase == Round.Phase.VOID:
        return judge_round.closed_at is not None
    return judge_round.phase == Round.Phase.CLOSED


def read_round(judge_round: Round) -> RoundReport:
    """Read a round's report in a constant number of queries."""
    seats = judge_round.seats.all()
    report = RoundReport(
        round=judge_round,
        question_count=judge_round.questions.count(),
        seats=seats.count(),
        completed=seats.exclude(completed_at=None).count(),
        rulings=describe_rulings(rulings_about(judge_round)),
    )
    return _reveal(report) if is_revealed(judge_round) else report


def _reveal(report: RoundReport) -> RoundReport:
    """Add what is public of a round that has closed."""
    judge_round = report.round
    best_first = F("score").desc(nulls_last=True)
    scores = list(
        judge_round.scores.select_related("node", "round").order_by(best_first, "node__name")
    )
    answers = Answer.objects.filter(question__round=judge_round).order_by()
    latencies = answers.values_list("node").annotate(Max("latency_ms"))
    return replace(
        report,
        revelation=Revelation(secret=bytes(judge_round.secret).hex(), rules=judge_round.rules),
        scores=scores if judge_round.phase == Round.Phase.CLOSED else [],
        latencies={node: took for node, took in latencies if took is not None},
        questions=_reveal_questions(judge_round, scores),
    )


def _reveal_questions(judge_round: Round, scores: list[Score]) -> list[QuestionReport]:
    """Read a round's questions with the answers of its best nodes."""
    seated = [score.node for score in scores if score.status == Score.Status.SCORED]
    shown = seated[:SHOWN_NODES]
    answers = Answer.objects.filter(question__round=judge_round)
    solved = Counter(answers.filter(solved=True).values_list("question_id", flat=True))
    given = {
        (answer.question_id, answer.node_id): answer for answer in answers.filter(node__in=shown)
    }
    return [
        QuestionReport(
            question=question,
            answers=[(node, given.get((question.pk, node.pk))) for node in shown],
            solved=solved[question.pk],
            seated=len(seated),
        )
        for question in judge_round.questions.order_by("position")
    ]
