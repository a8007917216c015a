"""The answers in a closed round: of some nodes to all questions, or of all nodes to a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from math import ceil

from django.db.models import FloatField, Q, QuerySet
from django.db.models.functions import Cast, Extract, Left
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judge.models import Answer, Question, Round, Score
from swarm_web.core.errors import RequestError, check_choice
from swarm_web.core.keyset import Keyset
from swarm_web.dashboard.reports.round import BEST_FIRST, ordered_scores
from swarm_web.nodes.models import Node

_SIGNS = {
    "right": "✓",
    "partial": "◐",
    "wrong": "✕",
    "no_answer": "∅",
    "timeout": "…",
    "verifier_error": "!",
}
# Lazy: translated only where used, as a page uses them hundreds of times.
_WORDS = {
    "partial": gettext_lazy("partly right"),
    "no_answer": gettext_lazy("no <answer> tags"),
    "timeout": gettext_lazy("check timed out"),
    "verifier_error": gettext_lazy("could not be checked"),
}
UNGRADED_SIGN = "?"
NONE_SIGN = "·"
PAGE_NODES = 50
# Number of nodes whose answers are quoted below each question; a question's own page has all.
QUOTED_NODES = 4
# Characters quoted of each answer: a round may have 256 questions, an answer 16,384 characters.
QUOTED_CHARS = 600
# Columns that a page shows; the other columns of scores and nodes are larger than all of these.
_SHOWN = (
    *("round", "node__name", "node__quarantined", "model", "arm", "status", "reason"),
    *("correct", "n", "score", "interval_low", "interval_high"),
)
# A replay shorter than this many seconds moves in tenths of a second.
_SHORT_REPLAY_S = 20
PAGE_ANSWERS = 40
BY_NODE = Keyset("node_id")
_OUTCOME_FILTERS: dict[str, Q] = {
    "": Q(),
    "right": Q(solved=True),
    "wrong": Q(solved=False),
    "unscored": Q(solved__isnull=True),
}


# ---- marks


class AnswerOutcome(StrEnum):
    """How an answer was graded. UNGRADED: it has no verdict. NONE: the node gave no answer."""

    RIGHT = "right"
    WRONG = "wrong"
    UNGRADED = "ungraded"
    NONE = "none"


@dataclass(frozen=True)
class AnswerMark:
    """One node's answer to one question, as a table shows it.

    `solved` is None until the answer is graded; `verdict` is the verifier's reason
    (`swarm_tasks.verdicts`). The answer arrived `latency_ms` milliseconds after the questions were
    sent to the node, and `second` seconds after the round opened. `second` is None if there is no
    answer.
    """

    solved: bool | None
    verdict: str = ""
    latency_ms: int | None = None
    second: float | None = None

    @property
    def outcome(self) -> AnswerOutcome:
        """How the answer was graded."""
        if self.second is None:
            return AnswerOutcome.NONE
        if self.solved is None:
            return AnswerOutcome.UNGRADED
        return AnswerOutcome.RIGHT if self.solved else AnswerOutcome.WRONG

    @property
    def sign(self) -> str:
        """One character for the verdict, so that colour is never the only difference."""
        if self.outcome is AnswerOutcome.NONE:
            return NONE_SIGN
        if self.outcome is AnswerOutcome.UNGRADED:
            return UNGRADED_SIGN
        return _SIGNS["right"] if self.solved else _SIGNS.get(self.verdict, _SIGNS["wrong"])

    @property
    def words(self) -> str:
        """The verdict in words, or that the answer is missing or not graded."""
        if self.outcome is AnswerOutcome.NONE:
            return _("no answer received")
        if self.outcome is AnswerOutcome.UNGRADED:
            return _("not graded")
        return _("right") if self.solved else describe_verdict(self.verdict)


def describe_verdict(verdict: str) -> str:
    """Return in words why an answer is not right; for most verdicts this is only "wrong"."""
    known = _WORDS.get(verdict)
    return _("wrong") if known is None else str(known)


def explain_signs() -> list[tuple[str, str]]:
    """Return each sign (`AnswerMark.sign`) with its meaning, for the legend of a table."""
    signs = [(sign, describe_verdict(verdict)) for verdict, sign in _SIGNS.items()]
    signs[0] = (_SIGNS["right"], _("right"))
    return [*signs, (UNGRADED_SIGN, _("not graded")), (NONE_SIGN, _("no answer received"))]


# ---- a page of nodes


@dataclass(frozen=True)
class SheetRow:
    """A node's result in a round, with a mark for each question in the round's order."""

    score: Score
    marks: list[AnswerMark]

    @property
    def took(self) -> int | None:
        """Milliseconds from sending the questions to the node's last answer; None if unknown."""
        return max((m.latency_ms for m in self.marks if m.latency_ms is not None), default=None)


@dataclass(frozen=True)
class Sheet:
    """A page of the list of a round's nodes, best first.

    `first` is the position of the page's first node in the whole list, counted from 1. `after`
    names the node after which the next page begins; empty on the last page. `quotes` has a list for
    each question. The list pairs each of the first QUOTED_NODES rows with the answer of the row's
    node, or with None if there is no answer. The `text` of a quoted answer is not loaded. Its first
    QUOTED_CHARS characters, and one more if the text is longer, are in the answer's attribute
    `opening`.
    """

    rows: list[SheetRow]
    first: int
    after: str
    quotes: list[list[tuple[SheetRow, Answer | None]]]

    @property
    def last(self) -> int:
        """The position of the page's last node in the whole list, counted from 1."""
        return self.first + len(self.rows) - 1

    @property
    def seconds(self) -> int:
        """Seconds from the round's opening to the page's last answer, rounded up; at least 1."""
        return max([1, *(ceil(mark.second or 0) for row in self.rows for mark in row.marks)])

    @property
    def step(self) -> float:
        """The step of the replay slider in seconds."""
        return 0.1 if self.seconds < _SHORT_REPLAY_S else 1


def read_sheet(judge_round: Round, questions: Sequence[Question], *, after: str) -> Sheet:
    """Read the page of nodes after the node named `after`, in a constant number of queries.

    An empty `after` means the first page. The round must have closed. Raises RequestError if the
    node named `after` was not in the round.
    """
    ordered = ordered_scores(judge_round)
    key = BEST_FIRST.key_of(_find_score(judge_round, after)) if after else None
    first = 1
    if key is not None:
        first += ordered.count() - BEST_FIRST.after(ordered, key).count()
    page = BEST_FIRST.read(ordered.only(*_SHOWN), after=key, limit=PAGE_NODES)
    rows = _read_rows(judge_round, page.rows, questions)
    return Sheet(
        rows=rows,
        first=first,
        after=rows[-1].score.node.name if page.next else "",
        quotes=_read_quotes(rows[:QUOTED_NODES], questions),
    )


def describe_replay(sheet: Sheet) -> dict[str, object]:
    """Return a sheet's replay: when each answer arrived, for the page's slider.

    The key `seconds` has the length of the replay, and `nodes` the name of each row's node.
    `answers` is a list with `[row, question, seconds]` for each answer: the indices of the answer's
    row and question, and the seconds from the round's opening to the answer's arrival.
    """
    return {
        "seconds": sheet.seconds,
        "nodes": [row.score.node.name for row in sheet.rows],
        "answers": [
            [at, question, round(mark.second, 2)]
            for at, row in enumerate(sheet.rows)
            for question, mark in enumerate(row.marks)
            if mark.outcome is not AnswerOutcome.NONE and mark.second is not None
        ],
    }


def _find_score(judge_round: Round, name: str) -> Score:
    score = judge_round.scores.filter(node__name=name).first()
    if score is None:
        raise RequestError(
            "query.after",
            f"{name[:40]!r} had no seat in round {judge_round.number}.",
            fix="Leave it out for the best nodes, or name one of this round.",
        )
    return score


def _read_rows(
    judge_round: Round, scores: Sequence[Score], questions: Sequence[Question]
) -> list[SheetRow]:
    """Return a row for each score, with its marks, without reading the answers' texts."""
    # Converted to a number by the database: parsing datetimes takes longer than all the rest.
    received_at = Cast(Extract("received_at", "epoch", tzinfo=UTC), FloatField())
    answers = _answers(scores, questions).values_list(
        *("node_id", "question_id", "solved", "verdict", "latency_ms"), received_at
    )
    opened = judge_round.opens_at.timestamp()
    found = {
        (node, question): AnswerMark(solved, verdict, latency, max(0.0, received - opened))
        for node, question, solved, verdict, latency, received in answers
    }
    missing = AnswerMark(solved=None)
    return [
        SheetRow(
            score, [found.get((score.node_id, question.pk), missing) for question in questions]
        )
        for score in scores
    ]


def _read_quotes(
    rows: Sequence[SheetRow], questions: Sequence[Question]
) -> list[list[tuple[SheetRow, Answer | None]]]:
    found = _answers([row.score for row in rows], questions).defer("text")
    answers = {
        (answer.question_id, answer.node_id): answer
        for answer in found.annotate(opening=Left("text", QUOTED_CHARS + 1))
    }
    return [
        [(row, answers.get((question.pk, row.score.node_id))) for row in rows]
        for question in questions
    ]


def _answers(scores: Sequence[Score], questions: Sequence[Question]) -> QuerySet[Answer]:
    return Answer.objects.filter(
        question__in=[question.pk for question in questions],
        node__in=[score.node_id for score in scores],
    )


# ---- one question


@dataclass(frozen=True)
class AnswerFilters:
    """Which answers to list.

    `outcome` is `right`, `wrong` or `unscored`, and `node` a part of the node's name. An empty
    `outcome` or `node` excludes nothing. The page begins after the node named `after`, or with the
    first answer if `after` is empty.
    """

    outcome: str = ""
    node: str = ""
    after: str = ""


@dataclass(frozen=True)
class AnswersReport:
    """A page of answers to one question, in the order in which the nodes joined the site.

    `after` names the node after which the next page begins; empty on the last page.
    """

    answers: list[tuple[Answer, AnswerMark]]
    after: str


def read_filters(query: dict[str, str]) -> AnswerFilters:
    """Return the filters of a query string. Raises RequestError for an unknown outcome."""
    outcome = query.get("outcome", "")
    check_choice("outcome", outcome, _OUTCOME_FILTERS)
    node, after = query.get("node", "").strip()[:64], query.get("after", "")
    return AnswerFilters(outcome, node, after)


def read_answers(judge_round: Round, question: Question, filters: AnswerFilters) -> AnswersReport:
    """Read a page of answers to a question of a closed round, in at most two queries.

    Raises RequestError if the node after which the page begins is unknown.
    """
    after = (_find_node(filters.after),) if filters.after else None
    page = BY_NODE.read(_filter_answers(question, filters), after=after, limit=PAGE_ANSWERS)
    return AnswersReport(
        answers=[(answer, _mark_answer(answer, judge_round)) for answer in page.rows],
        after=page.rows[-1].node.name if page.next else "",
    )


def _filter_answers(question: Question, filters: AnswerFilters) -> QuerySet[Answer]:
    answers = Answer.objects.filter(_OUTCOME_FILTERS[filters.outcome], question=question)
    if filters.node:
        answers = answers.filter(node__name__icontains=filters.node)
    return answers.select_related("node")


def _find_node(name: str) -> int:
    node = Node.objects.filter(name=name).first()
    if node is None:
        raise RequestError(
            "query.after",
            f"There is no node {name[:40]!r}.",
            fix="Leave it out to begin with the first answer.",
        )
    return node.pk


def _mark_answer(answer: Answer, judge_round: Round) -> AnswerMark:
    second = (answer.received_at - judge_round.opens_at).total_seconds()
    return AnswerMark(answer.solved, answer.verdict, answer.latency_ms, max(0.0, second))
