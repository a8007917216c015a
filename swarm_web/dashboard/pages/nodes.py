"""A node's own page."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.reports.node import read_report
from swarm_web.nodes.models import Node


@require_safe
def node(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether a node works, then show every number about it."""
    found = get_object_or_404(Node, name=name)
    report = read_report(found, now=timezone.now())
    return render(request, "node.html", {"report": report, "node": found})


@require_safe
def node_figure(_request: HttpRequest, name: str) -> JsonResponse:
    """Answer with a node's figure, for the chart to redraw itself."""
    found = get_object_or_404(Node, name=name)
    return JsonResponse(read_report(found, now=timezone.now()).figure())
