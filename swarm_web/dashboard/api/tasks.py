"""The read API's /tasks: a season's datasets, how often they are solved, and what they teach."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.fields import (
    Answered,
    Arm,
    Interval,
    ReportSchema,
    RoundNumber,
    SeasonName,
    at,
    read_under,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.tasks import SeasonTasks, TaskReport, load_task, read_tasks

router = Router(tags=["tasks"])


class RateOut(ReportSchema):
    """A share of `n` answers or rollouts, with its interval at 95 %."""

    share: float = Field(description="A fraction of one.", examples=[0.4375])
    interval: Interval
    n: int = Field(description="How many there are.", examples=[640])


class TaskOut(ReportSchema):
    """One dataset of the season."""

    dataset: str = Field(description="A reasoning-gym dataset.", examples=["chain_sum"])
    config: dict[str, Any] = at(
        "choice",
        "config",
        description="The season's configuration, where it differs from the generator's default.",
    )
    weight: float = Field(
        description="Its share of the season's questions, a fraction of one.", examples=[0.25]
    )
    level: int = Field(description="The season's level, from 1, the easiest.", examples=[2])
    levels: int = Field(description="How many levels nodes may train on.", examples=[4])
    example: str = Field(
        description="Its newest revealed question; empty before there is one.",
        examples=["What is 4 + 3?"],
    )
    rates: dict[str, RateOut] = Field(
        description="Arm -> share solved, over the season's last 20 closed rounds."
    )
    informative: RateOut | None = Field(
        description="Share of its rollouts with right and wrong completions, "
        "among the newest 1000 of the archive; null where none is of it."
    )


class TasksOut(ReportSchema):
    """The season's datasets, the most asked first; a season has few, so there are no pages."""

    season: SeasonName | None = at("season_name")
    items: list[TaskOut] = at("lines")


class PassRateOut(RateOut):
    """The share of answers of an arm that are right, over its last ten rounds up to `round`."""

    round: RoundNumber
    arm: Arm


class AskedOut(ReportSchema):
    """A revealed question, and how many of the nodes for which it counts solved it."""

    round: RoundNumber
    prompt: str = Field(description="What nodes were asked.", examples=["What is 4 + 3?"])
    solved: int = Field(description="How many nodes solved it.", examples=[12])
    counted: Answered


class TaskDetail(TaskOut):
    """One dataset with its pass rates, hardest and easiest questions in the last 100 rounds."""

    model_config = read_under(line=TaskOut.model_fields)

    config: dict[str, Any] = at(
        "line",
        "choice",
        "config",
        description="The season's configuration, where it differs from the generator's default.",
    )
    pass_rates: list[PassRateOut] = Field(description="Newest first, by arm within a round.")
    hardest: list[AskedOut] = Field(description="Those that fewest solved; five at most.")
    easiest: list[AskedOut] = Field(description="Those that most solved; five at most.")


DatasetPath = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9_]+$",
        description="The dataset's name.",
        json_schema_extra={"example": "chain_sum"},
    ),
]


@read(router, "/tasks", TasksOut)
def list_tasks(request: HttpRequest) -> SeasonTasks:
    """List the datasets that the season asks: how hard they are, how often they are solved."""
    return read_tasks()


@read(router, "/tasks/{dataset}", TaskDetail)
def get_task(request: HttpRequest, dataset: DatasetPath) -> TaskReport:
    """Show one dataset of the season: pass rates over rounds, hardest and easiest questions."""
    return load_task(dataset)
