"""Swarm against isolated nodes."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from swarm_web.dashboard.api.bodies.comparison import describe_comparison
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.comparison import CompareOut
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.seasons import read_seasons

router = Router(tags=["compare"])


@read(router, "/compare", CompareOut)
def get_comparison(request: HttpRequest) -> dict[str, Any]:
    """Tell what the judge claims about swarm and isolated nodes, model by model."""
    return describe_comparison(read_comparison(), read_seasons())
