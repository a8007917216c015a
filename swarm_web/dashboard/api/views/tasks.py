"""The tasks of a season, and one of its datasets."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.bodies.tasks import describe_task, describe_task_report
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.tasks import TaskDetail, TasksOut
from swarm_web.dashboard.reports.tasks import read_task, read_tasks

router = Router(tags=["tasks"])

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
def list_tasks(request: HttpRequest) -> dict[str, Any]:
    """List the datasets that the season asks: how hard they are, how often they are solved."""
    season, lines = read_tasks()
    return {
        "season": season.name if season else None,
        "items": [describe_task(line) for line in lines],
    }


@read(router, "/tasks/{dataset}", TaskDetail)
def get_task(request: HttpRequest, dataset: DatasetPath) -> dict[str, Any]:
    """Show one dataset of the season: pass rates over rounds, hardest and easiest questions."""
    report = read_task(dataset)
    if report is None:
        raise Http404
    return describe_task_report(report)
