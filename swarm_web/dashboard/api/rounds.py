"""The read API's /rounds: the list, one round, and a closed one's questions, answers and scores."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from judge.models import Answer, Round
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
    read_under,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_page, read_rows
from swarm_web.dashboard.api.reading import count_rows, name_answer, read
from swarm_web.dashboard.reports.round import (
    QuestionReport,
    RoundReport,
    ScoreReport,
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
    """What the operator decided, why, and what it changed."""

    action: str = Field(
        description="`void`, `recompute`, `quarantine`, `release` or `dismiss`.", examples=["void"]
    )
    text: str = Field(description="The decision in words.")
    reason: str = Field(description="The operator's reason, as written.")
    changes: dict[str, int] = Field(description="What it changed, in numbers.")
    made_at: Moment


class RoundOut(ReportSchema):
    """A round and its phase."""

    number: RoundNumber
    season: SeasonName = at("season", "name")
    phase: str = Field(
        description="`scheduled`, `open`, `scoring`, `closed` or `void`.", examples=["closed"]
    )
    opens_at: Moment
    closes_at: Moment
    closed_at: Moment | None
    commitment: str = Field(
        description="SHA-256 of the round's secret and rules, published before it opens.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )
    void_reason: str = Field(description="Why it does not count; empty otherwise.", examples=[""])
    answers_root: str = Field(
        description="Merkle root over all answers, fixed when answering ended; empty until then.",
        examples=["60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"],
    )
    results_root: str = Field(
        description="Merkle root over /rounds/<number>/results.jsonl, fixed when the round closed.",
        examples=["fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13"],
    )


class RoundsOut(ReportSchema):
    """Rounds, newest first."""

    items: list[RoundOut]
    next: Next


class ScoreOut(ReportSchema):
    """A node's result in one round; without a score when it was absent."""

    model_config = read_under(score="model arm status reason score correct n cells".split())

    round: RoundNumber = at("score", "round", "number")
    node: NodeName = at("score", "node", "name")
    model: Model
    arm: Arm
    status: str = Field(description="`scored` or `absent`.", examples=["scored"])
    reason: str = Field(
        description="Why the result is lower than it might be or does not count; else empty.",
        examples=["unanswered"],
    )
    quarantined: bool = at(
        "score",
        "node",
        "quarantined",
        description="Whether the node is out of the ranks now, whatever it scored; the reward "
        "downloads give such rows the status `quarantined`.",
        examples=[False],
    )
    advice: str = Field(description="What to do about it, in words.")
    score: Score | None
    interval: Interval | None
    correct: int = Field(description="How many questions it solved.", examples=[7])
    n: Answered
    cells: Cells


class ScoresOut(ReportSchema):
    """Results of nodes in rounds."""

    items: list[ScoreOut]
    next: Next


class QuestionOut(ReportSchema):
    """A revealed question."""

    model_config = read_under(question="position dataset prompt spec".split())

    id: UUID = at("question", "pk", description="Its key in /rounds/<number>/answers.jsonl.")
    position: int = Field(description="Its place in the round, from 1.", examples=[1])
    dataset: str = Field(description="A reasoning-gym dataset.", examples=["chain_sum"])
    prompt: str = Field(description="What nodes were asked.", examples=["What is 4 + 3?"])
    spec: dict[str, Any] = Field(
        description="The task spec, which regenerates the question on any machine."
    )
    solved: int = Field(description="How many nodes solved it.", examples=[12])
    counted: int = Field(
        description="For how many nodes it counts: all that were scored, or 0 if an answer to it "
        "could not be graded in time.",
        examples=[40],
    )
    seated: int = Field(description="How many nodes were scored.", examples=[41])


class QuestionsOut(ReportSchema):
    """A round's questions, in order."""

    items: list[QuestionOut]
    next: Next


class AnswerOut(ReportSchema):
    """A node's answer to one question of a closed round."""

    node: NodeName = at("node", "name")
    text: str = Field(description="What the model wrote.", examples=["<answer>7</answer>"])
    finish_reason: str = Field(description="`stop` or `length`.", examples=["stop"])
    received_at: Moment
    latency_ms: int | None = Field(
        description="From the offer of the questions to the answer's arrival.", examples=[1250]
    )
    score: float | None = Field(
        description="The verifier's, from 0 to 1; null if it was not graded in time.",
        examples=[1.0],
    )
    solved: bool | None = Field(description="Whether it counts as solved.", examples=[True])
    verdict: str = Field(description="The judge's verdict in a word.", examples=["right"])


class AnswersOut(ReportSchema):
    """All nodes' answers to one question, in the order in which the nodes joined the site."""

    items: list[AnswerOut]
    next: Next


class BeaconOut(ReportSchema):
    """The value of the public beacon drand that is mixed with a round's secret."""

    chain: str = Field(
        description="The hash of drand's chain.",
        examples=["52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"],
    )
    round: int = Field(description="The number of the beacon's own round.", examples=[34_000_000])
    emitted_at: Moment
    randomness: str | None = Field(
        description="SHA-256 of the signature; null until the questions are drawn with it.",
        examples=["fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc"],
    )
    signature: str | None = Field(description="The beacon's, in hexadecimal.")


class RoundDetail(RoundOut):
    """A round with its whole public record: what `swarm-node verify-round` checks.

    Until the round has closed, scores and questions are empty, secret and rules null. A void round
    keeps what had been revealed, and has no scores.
    """

    model_config = read_under(round=RoundOut.model_fields)

    season: SeasonName = at("round", "season", "name")
    question_count: int = Field(description="How many questions it asks.", examples=[16])
    seen_before: int = Field(
        description="How many of them its season had asked in earlier rounds, void ones included: "
        "0 but for rounds that were made before repeats were ruled out.",
        examples=[0],
    )
    seats: int = Field(description="How many nodes take part.", examples=[41])
    completed: int = Field(description="How many have answered all.", examples=[39])
    rulings: list[RulingOut]
    beacon: BeaconOut | None = Field(
        description="Null in seasons without a public beacon; see docs/verification.md."
    )
    secret: str | None = Field(description="Hexadecimal; determines the questions.")
    rules: dict[str, Any] | None = Field(description="The rules by which the questions were drawn.")
    scores: list[ScoreOut] = Field(description="Best first.")
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
def list_rounds(request: HttpRequest, cursor: Cursor = "", limit: Limit = 100) -> ListPage[Round]:
    """List rounds, newest first."""
    return read_rows(list_all_rounds(), cursor=cursor, limit=limit)


@read(router, "/rounds/{number}", RoundDetail)
def get_round(
    request: HttpRequest, number: RoundPath, response: HttpResponse
) -> RoundReport | HttpResponse:
    """Show one round; its secret, rules, questions and scores once it has closed.

    The answers are at /rounds/<number>/answers.jsonl, a line each. Against the limit of requests
    it counts once for every 500 scores, and only once if you have it already.
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
) -> ListPage[ScoreReport]:
    """List all nodes' results in a closed round, in the order in which they joined the site."""
    listing = list_scores_of(_load(number))
    return read_page(listing, cursor=cursor, limit=limit, report=ScoreReport)


@read(router, "/rounds/{number}/questions", QuestionsOut, conflicts=SEALED)
def list_questions(
    request: HttpRequest, number: RoundPath, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[QuestionReport]:
    """List the questions of a closed round, in its order."""
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
) -> ListPage[Answer]:
    """List all nodes' answers to one question of a closed round."""
    return read_rows(list_answers_to(_load(number), position), cursor=cursor, limit=limit)


def _load(number: int) -> Round:
    return load_revealed_round(number, status_at=f"/api/v1/rounds/{number}")
