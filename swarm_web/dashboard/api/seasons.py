"""The read API's /seasons."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from judge.models import Season
from swarm_web.dashboard.api.fields import Moment, Next, ReportSchema, SeasonName, at
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_rows
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.rounds import list_started_seasons

router = Router(tags=["seasons"])


class SeasonOut(ReportSchema):
    """A period of rounds with one task mix and one set of rules."""

    season: SeasonName = at("name")
    state: str = Field(description="`running` or `ended`.", examples=["running"])
    paused: bool = Field(description="Whether new rounds are held back.", examples=[False])
    halt_reason: str = Field(
        description="Why the judge paused it, with a code and a remedy; empty otherwise.",
        examples=[""],
    )
    started_at: Moment | None
    ended_at: Moment | None
    tasks: list[dict[str, Any]] = Field(
        description="The task mix: dataset, config and weight.",
        examples=[[{"dataset": "chain_sum", "config": {}, "weight": 1}]],
    )
    seed: int = Field(description="The seed of every task of the season.", examples=[118_999])
    generator: str = Field(description="What makes the tasks.", examples=["reasoning-gym 0.1.25"])
    questions_per_round: int = Field(description="Questions in a round.", examples=[16])
    minimum_questions: int = Field(
        description="The least number of questions for a rank.", examples=[16]
    )
    minimum_attendance: int = Field(
        description="In percent: the part of the rounds to which a node was invited that it must "
        "have been scored in to be ranked.",
        examples=[90],
    )
    completions: int = Field(description="L: completions in a rollout.", examples=[8])
    local: int = Field(description="I: own rollouts in a training set.", examples=[4])
    external: int = Field(description="J: rollouts of others in a training set.", examples=[4])
    batch: int | None = Field(
        description="Rollouts that a node generates in each step; null is I + J.", examples=[8]
    )
    assignment: str = Field(
        description="Who assigns the arms: `choice` of owners, or `coin`.", examples=["coin"]
    )
    isolated_publish: bool = Field(
        description="Whether isolated nodes share rollouts, though they take none.",
        examples=[False],
    )
    sampling: list[str] = Field(
        description="With which preferences nodes may request rollouts; see `docs/protocol.md`.",
        examples=[["any", "informative", "by_node", "by_task", "fresh"]],
    )
    answer_rules: str = Field(
        description="How answers are read; see `docs/tasks.md`.", examples=["answers-2"]
    )
    public_beacon: bool = Field(
        description="Whether each round's secret is mixed with a value of the public beacon drand.",
        examples=[False],
    )


class SeasonsOut(ReportSchema):
    """Seasons that have started, newest first."""

    items: list[SeasonOut]
    next: Next


@read(router, "/seasons", SeasonsOut)
def list_seasons(request: HttpRequest, cursor: Cursor = "", limit: Limit = 100) -> ListPage[Season]:
    """List seasons that have started, newest first, with the rules that nodes receive."""
    return read_rows(list_started_seasons(), cursor=cursor, limit=limit)
