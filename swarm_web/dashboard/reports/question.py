"""One question of a closed round with everybody's answers, filtered and a page at a time."""

from dataclasses import dataclass
from typing import Literal, get_args

from django.db.models import Q, QuerySet

from judge.models import Answer, Question, Round
from swarm_web.dashboard.reports.marks import Mark
from swarm_web.errors import RequestError
from swarm_web.keyset import Keyset
from swarm_web.nodes.models import Node

PAGE_ANSWERS = 40
BY_NODE = Keyset("node_id")

Kept = Literal["", "right", "wrong", "unscored"]
_KEPT: dict[str, Q] = {
    "": Q(),
    "right": Q(solved=True),
    "wrong": Q(solved=False),
    "unscored": Q(solved__isnull=True),
}


@dataclass(frozen=True)
class Filters:
    """Which answers to list: by outcome, by a part of the node's name, and behind which node."""

    outcome: Kept = ""
    node: str = ""
    after: str = ""


@dataclass(frozen=True)
class AnswersReport:
    """A page of answers, in the order in which their nodes first came.

    `after` is what the next page is asked for, empty on the last one.
    """

    answers: list[tuple[Answer, Mark]]
    after: str


def read_filters(query: dict[str, str]) -> Filters:
    """Return what a query string asks for. Raises RequestError."""
    outcome = query.get("outcome", "")
    if outcome not in _KEPT:
        raise RequestError(
            "query.outcome",
            f"There is no outcome {outcome[:40]!r}.",
            fix=f"Use one of {', '.join(name for name in get_args(Kept) if name)}.",
        )
    kept: Kept = next(name for name in get_args(Kept) if name == outcome)
    return Filters(kept, node=query.get("node", "").strip()[:64], after=query.get("after", ""))


def read_answers(judge_round: Round, question: Question, filters: Filters) -> AnswersReport:
    """Read a page of answers to a question of a round that has closed, in two queries.

    Raises RequestError when the node behind which the page begins is unknown.
    """
    after = (_find(filters.after),) if filters.after else None
    page = BY_NODE.read(_filter(question, filters), after=after, limit=PAGE_ANSWERS)
    return AnswersReport(
        answers=[(answer, _mark(answer, judge_round)) for answer in page.rows],
        after=page.rows[-1].node.name if page.next else "",
    )


def _filter(question: Question, filters: Filters) -> QuerySet[Answer]:
    answers = Answer.objects.filter(_KEPT[filters.outcome], question=question)
    if filters.node:
        answers = answers.filter(node__name__icontains=filters.node)
    return answers.select_related("node")


def _find(name: str) -> int:
    node = Node.objects.filter(name=name).first()
    if node is None:
        raise RequestError(
            "query.after",
            f"There is no node {name[:40]!r}.",
            fix="Leave it out to begin with the first answer.",
        )
    return node.pk


def _mark(answer: Answer, judge_round: Round) -> Mark:
    second = (answer.received_at - judge_round.opens_at).total_seconds()
    return Mark(answer.solved, answer.verdict, answer.latency_ms, max(0.0, second))
