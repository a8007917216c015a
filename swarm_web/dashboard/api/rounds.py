"""The read API's /rounds: the list, one round, and a closed one's questions, answers and scores."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BeforeValidator, Field

from judge import models
from swarm_web.dashboard.api.fields import (
    Answered,
    Arm,
    Cells,
    Interval,
    Model,
    Moment,
    Next,
    NodeName,
    ReportSchema,
    RoundNumber,
    Score,
    SeasonName,
    at,
    describe,
    read_under,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_page, read_rows
from swarm_web.dashboard.api.reading import count_rows, name_answer, read
from swarm_web.dashboard.reports.round import (
    QuestionReport,
    RoundReport,
    advise,
    list_answers_to,
    list_questions_of,
    list_scores_of,
    load_revealed_round,
    load_round,
    question_reporter,
    read_edition,
    read_round,
)
from swarm_web.dashboard.reports.rounds import list_all_rounds

router = Router(tags=["rounds"])


class RulingOut(ReportSchema):
    """A decision of the operator, its reason, and what the decision changed."""

    action: str = describe("`void`, `recompute`, `quarantine`, `release` or `dismiss`.", "void")
    text: str = describe("The decision in words.")
    reason: str = describe("The operator's reason, as written.")
    changes: dict[str, int] = describe("What it changed, in numbers.")
    made_at: Moment


class RoundOut(ReportSchema):
    """A round and its phase."""

    number: RoundNumber
    season: SeasonName = at("season.name")
    phase: str = describe("`scheduled`, `open`, `scoring`, `closed` or `void`.", "closed")
    opens_at: Moment
    closes_at: Moment
    closed_at: Moment | None
    commitment: str = describe(
        "SHA-256 of the round's secret and rules, published before it opens.",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    )
    void_reason: str = describe("Why it does not count; empty otherwise.", "")
    answers_root: str = describe(
        "Merkle root over all answers, fixed when answering ended; empty until then.",
        "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    )
    results_root: str = describe(
        "Merkle root over /rounds/<number>/results.jsonl, fixed when the round closed.",
        "fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13",
    )


class RoundsOut(ReportSchema):
    """Rounds, newest first."""

    items: list[RoundOut]
    next: Next


class ScoreOut(ReportSchema):
    """A node's result in one round; it has no score if the status is `absent`."""

    round: RoundNumber = at("round.number")
    node: NodeName = at("node.name")
    model: Model
    arm: Arm
    status: str = describe("`scored` or `absent`.", "scored")
    reason: str = describe(
        "Why the result is lower than it might be or does not count; else empty.", "unanswered"
    )
    quarantined: bool = at(
        "node.quarantined",
        "Whether the node is out of the ranks now, whatever it scored; the reward "
        "downloads give such rows the status `quarantined`.",
        False,
    )
    advice: Annotated[str, BeforeValidator(advise)] = at("reason", "What to do about it, in words.")
    score: Score | None
    interval: Interval | None
    correct: int = describe("How many questions it solved.", 7)
    n: Answered
    cells: Cells


class ScoresOut(ReportSchema):
    """Results of nodes in rounds."""

    items: list[ScoreOut]
    next: Next


class QuestionOut(ReportSchema):
    """A revealed question."""

    model_config = read_under(question="position dataset prompt spec".split())

    id: UUID = at("question.pk", "Its key in /rounds/<number>/answers.jsonl.")
    position: int = describe("Its place in the round, from 1.", 1)
    dataset: str = describe("A reasoning-gym dataset.", "chain_sum")
    prompt: str = describe("What nodes were asked.", "What is 4 + 3?")
    spec: dict[str, Any] = describe("The task spec, which regenerates the question on any machine.")
    solved: int = describe("How many nodes solved it.", 12)
    counted: int = describe(
        "For how many nodes it counts: all that were scored, or 0 if an answer to it "
        "could not be graded in time.",
        40,
    )
    seated: int = describe("How many nodes were scored.", 41)


class QuestionsOut(ReportSchema):
    """A round's questions, by position."""

    items: list[QuestionOut]
    next: Next


class AnswerOut(ReportSchema):
    """A node's answer to one question of a closed round."""

    node: NodeName = at("node.name")
    text: str = describe("What the model wrote.", "<answer>7</answer>")
    finish_reason: str = describe("`stop` or `length`.", "stop")
    received_at: Moment
    latency_ms: int | None = describe(
        "From the offer of the questions to the answer's arrival.", 1250
    )
    score: float | None = describe(
        "The verifier's, from 0 to 1; null if it was not graded in time.", 1.0
    )
    solved: bool | None = describe("Whether it counts as solved.", True)
    verdict: str = describe("The judge's verdict in a word.", "right")


class AnswersOut(ReportSchema):
    """A page of answers to one question, in the order in which their nodes joined the site."""

    items: list[AnswerOut]
    next: Next


class BeaconOut(ReportSchema):
    """The value that is mixed with a round's secret, from the public beacon drand."""

    chain: str = describe(
        "The hash of drand's chain.",
        "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    )
    round: int = describe("The number of the beacon's own round.", 34_000_000)
    emitted_at: Moment
    randomness: str | None = describe(
        "SHA-256 of the signature; null until the questions are drawn with it.",
        "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
    )
    signature: str | None = describe("The beacon's, in hexadecimal.")


class RoundDetail(RoundOut):
    """A round with its whole public record: what `swarm-node verify-round` checks.

    Until the round has closed, scores and questions are empty, secret and rules null. A void round
    keeps what had been revealed, and has no scores.
    """

    model_config = read_under(round=RoundOut.model_fields)

    season: SeasonName = at("round.season.name")
    question_count: int = describe("How many questions it asks.", 16)
    seen_before: int = describe(
        "How many of them its season had asked before, also in void rounds or earlier in this "
        "round: 0 except in rounds that were made before repeats were ruled out.",
        0,
    )
    seats: int = describe("How many nodes were invited or joined later.", 41)
    completed: int = describe("How many have answered all.", 39)
    rulings: list[RulingOut]
    beacon: BeaconOut | None = describe(
        "Null in seasons without a public beacon; see docs/verification.md."
    )
    secret: str | None = describe("Hexadecimal; determines the questions.")
    rules: dict[str, Any] | None = describe("The rules by which the questions were drawn.")
    scores: list[ScoreOut] = describe("Best first.")
    questions: list[QuestionOut]


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
def list_rounds(
    request: HttpRequest, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[models.Round]:
    """List rounds, newest first."""
    return read_rows(list_all_rounds(), cursor=cursor, limit=limit)


@read(router, "/rounds/{number}", RoundDetail)
def get_round(
    request: HttpRequest, number: RoundPath, response: HttpResponse
) -> RoundReport | HttpResponse:
    """Show one round. Once it has closed, show its secret, rules, questions and scores too.

    The answers are at /rounds/<number>/answers.jsonl, one per line. For the rate limit, a round
    counts as one request for every 500 scores, rounded up; a response with status 304 counts as
    one.
    """
    found = load_round(number)
    if found.is_revealed:
        edition = read_edition(found)
        answer = name_answer(request, response, etag=edition.etag)
        if answer is not response:
            return answer
        count_rows(request, rows=edition.rows)
    return read_round(found)


@read(router, "/rounds/{number}/scores", ScoresOut, conflicts=SEALED)
def list_scores_of_round(
    request: HttpRequest, number: RoundPath, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[models.Score]:
    """List all nodes' results in a closed round, in the order in which nodes joined the site."""
    return read_rows(list_scores_of(_load(number)), cursor=cursor, limit=limit)


@read(router, "/rounds/{number}/questions", QuestionsOut, conflicts=SEALED)
def list_questions(
    request: HttpRequest, number: RoundPath, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[QuestionReport]:
    """List the questions of a closed round, by position."""
    judge_round = _load(number)
    report = question_reporter(judge_round)
    return read_page(list_questions_of(judge_round), cursor=cursor, limit=limit, report=report)


@read(router, "/rounds/{number}/questions/{position}/answers", AnswersOut, conflicts=SEALED)
def list_answers(
    request: HttpRequest,
    number: RoundPath,
    position: PositionPath,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> ListPage[models.Answer]:
    """List all nodes' answers to one question of a closed round."""
    return read_rows(list_answers_to(_load(number), position), cursor=cursor, limit=limit)


def _load(number: int) -> models.Round:
    return load_revealed_round(number, status_at=f"/api/v1/rounds/{number}")
