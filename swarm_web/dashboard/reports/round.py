"""The report of a round; it has no questions, answers or scores until the round has closed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec
from django.db.models import Count, Max, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from judge.models import Answer, Question, Round, RoundSummary, Ruling, Score
from judge.repeats import count_seen_before
from judge.selectors.rounds import count_questions, rulings_about
from swarm_protocol.version import CLIENT_VERSION
from swarm_tasks.beacon import Beacon
from swarm_web.core.errors import RequestError
from swarm_web.core.keyset import KeyColumn, Keyset, Listing
from swarm_web.nodes.models import Node

BEST_FIRST = Keyset(KeyColumn("score", descending=True, nulls_last=True), "node_id")

_ACTIONS: dict[Ruling.Action, Promise] = {
    Ruling.Action.VOID: _("The operator excluded this round from all scores."),
    Ruling.Action.RECOMPUTE: _("The operator had this round's answers regraded."),
    Ruling.Action.QUARANTINE: _("The operator removed this node from the ranking."),
    Ruling.Action.RELEASE: _("The operator restored this node to the ranking."),
    Ruling.Action.DISMISS: _("The operator reviewed an anomaly and found it harmless."),
}
_ADVICE: dict[str, Promise] = {
    Score.Reason.UNANSWERED: _("Use a faster device or a smaller model to answer in time."),
    Score.Reason.UNSCORED: _(
        "No action needed: this does not lower the score. If it happens often, tell the operator."
    ),
    Score.Reason.NOT_OFFERED: _(
        "Check what its terminal showed while the round was open: the node was busy, "
        "stuck or offline. Missing a round does not lower the score."
    ),
    Score.Reason.DECLINED: _(
        "Let all your nodes answer the rounds they are invited to, or stop them "
        "before a round opens."
    ),
    Score.Reason.CAME_LATE: _("No action needed: leave it running for the next round."),
}


# ---- rulings


@dataclass(frozen=True)
class RulingLine:
    """A decision of the operator as pages show it.

    `action` is a Ruling.Action, `text` describes this action in words, and `reason` is what the
    operator wrote. `changes` counts what the ruling changed, by name, such as `scores_changed`.
    """

    action: str
    text: str
    reason: str
    changes: dict[str, int]
    made_at: datetime

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The items of `changes`, for templates.

        In a template, `changes.items` would mean the value of a key `items`, if there is one.
        """
        return list(self.changes.items())


def describe_rulings(rulings: Iterable[Ruling]) -> list[RulingLine]:
    """Return a RulingLine for each ruling, in the given order."""
    return [
        RulingLine(
            action=ruling.action,
            text=str(_ACTIONS[Ruling.Action(ruling.action)]),
            reason=ruling.reason,
            changes={k: v for k, v in ruling.changes.items() if isinstance(v, int)},
            made_at=ruling.made_at,
        )
        for ruling in rulings
    ]


# ---- scores


def advise(reason: str) -> str:
    """Return what the owner can do about a Score.Reason; empty for a complete result."""
    return str(_ADVICE.get(reason, ""))


# ---- the round


@dataclass(frozen=True)
class QuestionReport:
    """A revealed question, with the number of nodes that solved it.

    `seated` nodes were scored in the round. The question counts for `counted` of them, and `solved`
    of these nodes solved it. `counted` is 0 if an answer that was not postponed could not be graded
    in time, otherwise `seated`. A postponed answer that is not graded in time counts as wrong.
    """

    question: Question
    solved: int
    counted: int
    seated: int

    @property
    def index(self) -> int:
        """The index in the question's task spec, which is needed to generate the question again."""
        return int(self.question.spec["index"])

    @property
    def share(self) -> float | None:
        """Share of `counted` nodes that solved the question, in [0, 1]; None if `counted` is 0."""
        return self.solved / self.counted if self.counted else None


@dataclass(frozen=True)
class BeaconReport:
    """The value of a public beacon (drand) that is mixed with a round's secret.

    `chain` is the hash that identifies the beacon. The beacon publishes the value of its round
    `round` at `emitted_at`. `randomness` is that value and `signature` its signature; both are None
    until the site knows the value.
    """

    chain: str
    round: int
    emitted_at: datetime
    randomness: str | None
    signature: str | None


@dataclass(frozen=True)
class Lead:
    """The best score of a round: `nodes` nodes have it, and `node` is the name of one of them.

    `score` is in [0, 1]; `node` solved `correct` of the `n` questions that count. Untrained and
    quarantined nodes are left out.
    """

    node: str
    correct: int
    n: int
    score: float
    nodes: int


@dataclass(frozen=True)
class RoundReport:
    """What pages and API show of a round; before it closes, `questions` is empty and `lead` None.

    The round has `question_count` questions, of which `seen_before` repeat an earlier question of
    the same round or of an earlier round of the season. `seats` nodes have a seat in the round, and
    `completed` of them answered every question. `lead` is None also if all scored nodes are
    untrained or quarantined. A round that became void after it closed keeps its revealed questions,
    and loses its scores and lead.
    """

    round: Round
    question_count: int
    seen_before: int
    seats: int
    completed: int
    rulings: list[RulingLine]
    questions: list[QuestionReport]
    lead: Lead | None

    @cached_property
    def beacon(self) -> BeaconReport | None:
        """The beacon that the round's rules name; None if they name none."""
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
        """All scores, best first; none unless the round is closed.

        There may be thousands, so pages read a part of them (`reports.answers.Sheet`).
        """
        return list(scores_of(self.round).defer("answered", "solved"))

    @property
    def secret(self) -> str | None:
        """The secret in hexadecimal; None unless the round is revealed (`Round.is_revealed`)."""
        return bytes(self.round.secret).hex() if self.round.is_revealed else None

    @property
    def rules(self) -> dict[str, Any] | None:
        """The rules by which the questions were drawn; None unless the round is revealed."""
        return self.round.rules if self.round.is_revealed else None


@dataclass(frozen=True)
class RoundEdition:
    """The version of the API's response for a revealed round, as an HTTP `etag`.

    `rows` is the number of the round's scores. The response has no scores if the round is void.
    """

    etag: str
    rows: int


def load_round(number: int) -> Round:
    """Return the round of that number with its season. Raises Http404 if there is none."""
    return get_object_or_404(Round.objects.select_related("season"), number=number)


def load_revealed_round(number: int, *, status_at: str) -> Round:
    """Return the round of that number if its questions are public.

    They are public once the round has closed, even if it became void later. Raises Http404 if there
    is no such round, and RequestError if its questions are not public. If the round can still
    close, the RequestError names `status_at`, an address that shows the round's phase.
    """
    judge_round = load_round(number)
    if not judge_round.is_revealed:
        reason, fix = "it has not closed", f"Ask again when {status_at} says that it is closed."
        if judge_round.phase == Round.Phase.VOID:
            reason, fix = "it was voided before it closed", "Choose a round that has closed."
        raise RequestError(
            "round.sealed", f"Round {number} is sealed: {reason}.", fix=fix, status=409
        )
    return judge_round


def read_edition(judge_round: Round) -> RoundEdition:
    """Return the version of the API's response for a revealed round, without reading its scores.

    The response changes only after a ruling about the round or about any of its nodes, or with a
    new version of the software (CLIENT_VERSION). The returned version also changes after rulings
    about other rounds and nodes, which leave the response as it was.
    """
    ruling = Ruling.objects.aggregate(last=Max("pk"))["last"] or 0
    rows = judge_round.scores.count()
    state = (judge_round.season.name, judge_round.phase, judge_round.closed_at, ruling, rows)
    digest = blake2b(repr((*state, CLIENT_VERSION)).encode(), digest_size=16)
    return RoundEdition(f'W/"{digest.hexdigest()}"', rows)


def list_scores_of(judge_round: Round) -> Listing[Score]:
    """List the results of a round in the order in which its nodes joined the site.

    The list is empty unless the round is closed.
    """
    scores = Score.objects.filter(round=judge_round, round__phase=Round.Phase.CLOSED)
    return Listing(scores.select_related("node", "round"), Keyset("node_id"))


def list_questions_of(judge_round: Round) -> Listing[Question]:
    """List a round's questions, in order of position. The round must be revealed."""
    return Listing(judge_round.questions.all(), Keyset("position"))


def list_answers_to(judge_round: Round, position: int) -> Listing[Answer]:
    """List the answers to a question, in the order in which the nodes joined the site.

    The round must be revealed. Raises Http404 if it has no question at that position.
    """
    question = get_object_or_404(Question, round=judge_round, position=position)
    answers = Answer.objects.filter(question=question).select_related("node")
    return Listing(answers, Keyset("node_id"))


def scores_of(judge_round: Round) -> QuerySet[Score]:
    """Return the results of a round, best first, and nodes without a score last.

    The result is empty unless the round is closed.
    """
    if judge_round.phase != Round.Phase.CLOSED:
        return judge_round.scores.none()
    return ordered_scores(judge_round)


def ordered_scores(judge_round: Round) -> QuerySet[Score]:
    """Return the results of a round in any phase, best first, and nodes without a score last.

    The query also reads the nodes. The index `scores_best_first` has this order.
    """
    return BEST_FIRST.sort(judge_round.scores.select_related("node"))


def read_round(judge_round: Round) -> RoundReport:
    """Read a round's report. The number of queries depends only on the number of questions."""
    turnout = judge_round.seats.aggregate(seats=Count("pk"), completed=Count("completed_at"))
    questions, lead = [], None
    if judge_round.is_revealed:
        report = question_reporter(judge_round)
        questions = [report(question) for question in judge_round.questions.order_by("position")]
        lead = _find_lead(judge_round)
    return RoundReport(
        judge_round,
        question_count=len(questions) or count_questions(judge_round),
        seen_before=count_seen_before(judge_round),
        rulings=describe_rulings(rulings_about(judge_round)),
        questions=questions,
        lead=lead,
        **turnout,
    )


def question_reporter(judge_round: Round) -> Callable[[Question], QuestionReport]:
    """Return a function that makes the report of any question in a revealed round.

    The round's summary is read once, now. Without a summary, all counts in the reports are 0.
    """
    summary = RoundSummary.objects.filter(round=judge_round).first()

    def report(question: Question) -> QuestionReport:
        if summary is None:
            return QuestionReport(question, solved=0, counted=0, seated=0)
        solved, counted = summary.tallies[question.position - 1]
        return QuestionReport(question, solved, counted, seated=summary.scored)

    return report


def _find_lead(judge_round: Round) -> Lead | None:
    competing = scores_of(judge_round).filter(node__quarantined=False).exclude(arm=Node.Arm.BASE)
    best = competing.values_list("node__name", "correct", "n", "score").first()
    # Nodes without a score come last.
    if best is None or (score := best[3]) is None:
        return None
    return Lead(*best[:3], score, nodes=competing.filter(score=score).count())
