"""A round's report. Until the round has closed it holds no question, spec, answer or score."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from django.db.models import F

from judge.models import Answer, Question, Round, Score
from swarm_web.nodes.models import Node

# The page shows the answers of this many nodes, best first; the downloads have every score.
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
class RoundReport:
    """A round, and after it closed its scores (best first) and questions."""

    round: Round
    question_count: int
    seats: int
    completed: int
    scores: list[Score] = field(default_factory=list)
    questions: list[QuestionReport] = field(default_factory=list)

    @property
    def leaders(self) -> list[Score]:
        """The scores that none is better than."""
        scored = [score for score in self.scores if score.score is not None]
        return [score for score in scored if score.score == scored[0].score]


def read_round(judge_round: Round) -> RoundReport:
    """Read a round's report in a constant number of queries."""
    seats = judge_round.seats.all()
    report = RoundReport(
        round=judge_round,
        question_count=judge_round.questions.count(),
        seats=seats.count(),
        completed=seats.exclude(completed_at=None).count(),
    )
    if judge_round.phase != Round.Phase.CLOSED:
        return report
    best_first = F("score").desc(nulls_last=True)
    scores = list(
        judge_round.scores.select_related("node", "round").order_by(best_first, "node__name")
    )
    return replace(report, scores=scores, questions=_reveal(judge_round, scores))


def _reveal(judge_round: Round, scores: list[Score]) -> list[QuestionReport]:
    """Read a closed round's questions with the answers of its best nodes."""
    seated = [s.node for s in scores if s.status == Score.Status.SCORED]
    shown = seated[:SHOWN_NODES]
    answers = Answer.objects.filter(question__round=judge_round)
    solved: defaultdict[object, int] = defaultdict(int)
    for pk in answers.filter(solved=True).values_list("question_id", flat=True):
        solved[pk] += 1
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
