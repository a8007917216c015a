"""The pages of the season's datasets, and of one of them."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from swarm_web.dashboard.charts.tasks import POOLED_ROUNDS
from swarm_web.dashboard.reports.tasks import (
    LATEST_ROUNDS,
    SHOWN_ROUNDS,
    load_task,
    read_tasks,
)


@require_safe
def tasks(request: HttpRequest) -> HttpResponse:
    """List the season's datasets."""
    report = read_tasks()
    context = {"season": report.season, "lines": report.lines, "rounds": LATEST_ROUNDS}
    return render(request, "tasks.html", context)


@require_safe
def task(request: HttpRequest, dataset: str) -> HttpResponse:
    """Show one dataset of the season."""
    context = {"report": load_task(dataset), "rounds": SHOWN_ROUNDS, "pooled": POOLED_ROUNDS}
    return render(request, "task.html", context)


@require_safe
def task_figure(request: HttpRequest, dataset: str) -> JsonResponse:
    """Return a dataset's figure as JSON."""
    return JsonResponse(load_task(dataset).drawing.figure)
