"""Rounds, one of them, and what it revealed."""

from hashlib import blake2b
from typing import Annotated, Any

from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from judge.models import Answer, Question, Round, Ruling, Score
from swarm_protocol.version import CLIENT_VERSION
from swarm_web.dashboard.api.bodies.rounds import (
    describe_answer,
    describe_question,
    describe_round,
    describe_round_report,
    describe_score,
)
from swarm_web.dashboard.api.limits import charge_rows
from swarm_web.dashboard.api.paging import Cursor, Limit, Number, read_cursor, read_page
from swarm_web.dashboard.api.reading import name_answer, read
from swarm_web.dashboard.api.schemas.rounds import (
    AnswersOut,
    QuestionsOut,
    RoundDetail,
    RoundsOut,
    ScoresOut,
)
from swarm_web.dashboard.reports.round import question_teller, read_round
from swarm_web.errors import RequestError

router = Router(tags=["rounds"])

SEALED = "The round has not closed: this is sealed"

RoundPath = Annotated[
    int,
    Field(
        ge=0, le=2**31 - 1, description="The round's number.", json_schema_extra={"example": 128}
    ),
]
PositionPath = Annotated[
    int,
    Field(
        ge=0,
        le=2**15 - 1,
        description="The question's place in the round.",
        json_schema_extra={"example": 1},
    ),
]


@read(router, "/rounds", RoundsOut)
def list_rounds(request: HttpRequest, cursor: Cursor = "", limit: Limit = 100) -> dict[str, Any]:
    """List rounds, newest first."""
    rounds = Round.objects.select_related("season").order_by("-number")
    if (before := read_cursor(cursor, tuple[Number])) is not None:
        rounds = rounds.filter(number__lt=before[0])
    return read_page(rounds, limit=limit, key=lambda found: [found.number], describe=describe_round)


@read(router, "/rounds/{number}", RoundDetail)
def get_round(
    request: HttpRequest, number: RoundPath, response: HttpResponse
) -> dict[str, Any] | HttpResponse:
    """Show one round; its secret, rules, questions and scores once it has closed.

    The answers are at /rounds/<number>/answers.jsonl, a line each. Against the limit of requests
    it counts once for every 500 scores, and only once if you have it already.
    """
    found = get_object_or_404(Round.objects.select_related("season"), number=number)
    if found.is_revealed:
        rows = found.scores.count()
        answer = name_answer(request, response, etag=_name_edition(found, rows=rows))
        if answer is not response:
            return answer
        charge_rows(request, rows=rows)
    return describe_round_report(read_round(found))


def _name_edition(judge_round: Round, *, rows: int) -> str:
    """Return a revealed round's ETag without reading its scores.

    After it has closed only a ruling changes what is told of it: one about the round, or one about
    any of its nodes. The version stands for what a release tells differently.
    """
    ruling = Ruling.objects.aggregate(last=Max("pk"))["last"] or 0
    told = (judge_round.season.name, judge_round.phase, judge_round.closed_at, ruling, rows)
    digest = blake2b(repr((*told, CLIENT_VERSION)).encode(), digest_size=16)
    return f'W/"{digest.hexdigest()}"'


@read(router, "/rounds/{number}/scores", ScoresOut, conflicts=SEALED)
def list_scores_of_round(
    request: HttpRequest, number: RoundPath, cursor: Cursor = "", limit: Limit = 100
) -> dict[str, Any]:
    """List all nodes' results in a closed round, in the order in which they joined the site."""
    judge_round = _find_revealed(number)
    scores = Score.objects.filter(round=judge_round, round__phase=Round.Phase.CLOSED)
    scores = scores.select_related("node", "round").order_by("node_id")
    if (after := read_cursor(cursor, tuple[Number])) is not None:
        scores = scores.filter(node_id__gt=after[0])
    return read_page(
        scores, limit=limit, key=lambda score: [score.node_id], describe=describe_score
    )


@read(router, "/rounds/{number}/questions", QuestionsOut, conflicts=SEALED)
def list_questions(
    request: HttpRequest, number: RoundPath, cursor: Cursor = "", limit: Limit = 100
) -> dict[str, Any]:
    """List the questions of a closed round, in its order."""
    judge_round = _find_revealed(number)
    questions = judge_round.questions.order_by("position")
    if (after := read_cursor(cursor, tuple[Number])) is not None:
        questions = questions.filter(position__gt=after[0])
    tell = question_teller(judge_round)
    return read_page(
        questions,
        limit=limit,
        key=lambda question: [question.position],
        describe=lambda question: describe_question(tell(question)),
    )


@read(router, "/rounds/{number}/questions/{position}/answers", AnswersOut, conflicts=SEALED)
def list_answers(
    request: HttpRequest,
    number: RoundPath,
    position: PositionPath,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> dict[str, Any]:
    """List all nodes' answers to one question of a closed round."""
    question = get_object_or_404(Question, round=_find_revealed(number), position=position)
    answers = Answer.objects.filter(question=question).select_related("node").order_by("node_id")
    if (after := read_cursor(cursor, tuple[Number])) is not None:
        answers = answers.filter(node_id__gt=after[0])
    return read_page(
        answers, limit=limit, key=lambda answer: [answer.node_id], describe=describe_answer
    )


def _find_revealed(number: int) -> Round:
    """Return a round whose questions are public. Raises Http404, and RequestError if sealed."""
    judge_round: Round = get_object_or_404(Round, number=number)
    if not judge_round.is_revealed:
        raise RequestError(
            "round.sealed",
            f"Round {number} is sealed: it has not closed.",
            fix=f"Ask again when /api/v1/rounds/{number} says that it is closed.",
            status=409,
        )
    return judge_round
