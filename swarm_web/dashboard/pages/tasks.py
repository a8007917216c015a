"""The tasks of a season, and one of its datasets."""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from swarm_web.dashboard.charts.tasks import POOLED_ROUNDS
from swarm_web.dashboard.reports.tasks import (
    LATEST_ROUNDS,
    SHOWN_ROUNDS,
    TaskReport,
    read_task,
    read_tasks,
)


@require_safe
def tasks(request: HttpRequest) -> HttpResponse:
    """List the datasets that the season asks."""
    season, lines = read_tasks()
    return render(
        request, "tasks.html", {"season": season, "lines": lines, "rounds": LATEST_ROUNDS}
    )


@require_safe
def task(request: HttpRequest, dataset: str) -> HttpResponse:
    """Show one dataset of the season."""
    context = {"report": _read(dataset), "rounds": SHOWN_ROUNDS, "pooled": POOLED_ROUNDS}
    return render(request, "task.html", context)


@require_safe
def task_figure(request: HttpRequest, dataset: str) -> JsonResponse:
    """Answer with a dataset's figure, for the chart to draw itself."""
    return JsonResponse(_read(dataset).drawing.figure)


def _read(dataset: str) -> TaskReport:
    report = read_task(dataset)
    if report is None:
        raise Http404
    return report
