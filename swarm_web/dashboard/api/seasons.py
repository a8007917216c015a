"""The read API's /seasons."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from judge.models import Season
from swarm_web.dashboard.api.fields import Moment, Next, ReportSchema, SeasonName, at, describe
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_rows
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.rounds import list_started_seasons

router = Router(tags=["seasons"])


class SeasonOut(ReportSchema):
    """A period of rounds with one task mix and one set of rules."""

    season: SeasonName = at("name")
    state: str = describe("`running` or `ended`.", "running")
    paused: bool = describe("Whether new rounds are held back.", False)
    halt_reason: str = describe(
        "Why the judge paused it, with a code and a remedy; empty otherwise.", ""
    )
    started_at: Moment | None
    ended_at: Moment | None
    tasks: list[dict[str, Any]] = describe(
        "The task mix: dataset, config and weight.",
        [{"dataset": "chain_sum", "config": {}, "weight": 1}],
    )
    seed: int = describe("The seed of every task of the season.", 118_999)
    generator: str = describe("What makes the tasks.", "reasoning-gym 0.1.25")
    questions_per_round: int = describe("Questions in a round.", 16)
    minimum_questions: int = describe("The least number of questions for a rank.", 16)
    minimum_attendance: int = describe(
        "In percent: a node must have been scored in at least this part of the rounds that it "
        "joined or missed to be ranked.",
        90,
    )
    completions: int = describe("L: completions in a rollout.", 8)
    local: int = describe("I: own rollouts in a training set.", 4)
    external: int = describe("J: rollouts of others in a training set.", 4)
    batch: int | None = describe("Rollouts that a node generates in each step; null is I + J.", 8)
    assignment: str = describe("Who assigns the arms: `choice` of owners, or `coin`.", "coin")
    isolated_publish: bool = describe(
        "Whether isolated nodes share rollouts, though they take none.", False
    )
    sampling: list[str] = describe(
        "With which preferences nodes may request rollouts; see `docs/protocol.md`.",
        ["any", "informative", "by_node", "by_task", "fresh"],
    )
    answer_rules: str = describe("How answers are read; see `docs/tasks.md`.", "answers-2")
    public_beacon: bool = describe(
        "Whether each round's secret is mixed with a value of the public beacon drand.", False
    )


class SeasonsOut(ReportSchema):
    """Seasons that have started, newest first."""

    items: list[SeasonOut]
    next: Next


@read(router, "/seasons", SeasonsOut)
def list_seasons(request: HttpRequest, cursor: Cursor = "", limit: Limit = 100) -> ListPage[Season]:
    """List seasons that have started, newest first, with the rules that nodes receive."""
    return read_rows(list_started_seasons(), cursor=cursor, limit=limit)
