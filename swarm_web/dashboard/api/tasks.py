"""The read API's /tasks: a season's datasets and the pass rates of the arms in them."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.fields import (
    Arm,
    Interval,
    ReportSchema,
    RoundNumber,
    SeasonName,
    at,
    describe,
    read_under,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.tasks import SeasonTasks, TaskReport, load_task, read_tasks

router = Router(tags=["tasks"])


class RateOut(ReportSchema):
    """A share of `n` answers or rollouts, with its 95 % interval."""

    share: float = describe("A fraction of one.", 0.4375)
    interval: Interval
    n: int = describe("How many there are.", 640)


class TaskOut(ReportSchema):
    """One dataset of the season."""

    dataset: str = describe("A reasoning-gym dataset.", "chain_sum")
    config: dict[str, Any] = describe(
        "The season's configuration, where it differs from the generator's default."
    )
    weight: float = describe("Its share of the season's questions, a fraction of one.", 0.25)
    level: int = describe("The season's level, from 1, the easiest.", 2)
    levels: int = describe("How many levels nodes may train on.", 4)
    example: str = describe(
        "Its newest revealed question; empty before there is one.", "What is 4 + 3?"
    )
    rates: dict[str, RateOut] = describe(
        "Arm -> share solved, over the season's last 20 closed rounds."
    )
    informative: RateOut | None = describe(
        "Share of its rollouts with right and wrong completions, "
        "among the newest 1000 of the archive; null where none is of it."
    )


class TasksOut(ReportSchema):
    """The season's datasets, the most asked first; a season has few, so there are no pages."""

    season: SeasonName | None = at("season_name")
    items: list[TaskOut] = at("lines")


class PassRateOut(RateOut):
    """The share of an arm's answers that are right, over up to ten rounds that end with `round`."""

    round: RoundNumber
    arm: Arm


class AskedOut(ReportSchema):
    """A revealed question: for how many nodes it counts, and how many of them solved it."""

    round: RoundNumber
    prompt: str = describe("What nodes were asked.", "What is 4 + 3?")
    solved: int = describe("How many nodes solved it.", 12)
    counted: int = describe("For how many nodes it counts.", 40)


class TaskDetail(TaskOut):
    """One dataset, with `pass_rates` and questions from the season's last 100 closed rounds."""

    model_config = read_under(line=TaskOut.model_fields)

    pass_rates: list[PassRateOut] = describe("Newest first, by arm within a round.")
    hardest: list[AskedOut] = describe("Those that fewest solved; five at most.")
    easiest: list[AskedOut] = describe("Those that most solved; five at most.")


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
    """List the season's datasets, with their levels and pass rates."""
    return read_tasks()


@read(router, "/tasks/{dataset}", TaskDetail)
def get_task(request: HttpRequest, dataset: DatasetPath) -> TaskReport:
    """Show one dataset of the season: pass rates over rounds, hardest and easiest questions."""
    return load_task(dataset)
