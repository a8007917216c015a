"""Pages of text: the downloads, how to join, robots.txt, and the page for 404."""

from collections.abc import Mapping
from typing import TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.dashboard.downloads import answers, rewards, rollouts
from swarm_web.dashboard.downloads.formats import FORMATS
from swarm_web.dashboard.reports.installing import (
    COSTS,
    LINK_MEGABITS,
    Build,
    Tool,
    write_install_lines,
    write_update_lines,
)

Shown = TypeVar("Shown")


@require_safe
def downloads(request: HttpRequest) -> HttpResponse:
    """Offer the data, and describe its columns and how to cite it."""
    context = {
        "formats": list(FORMATS),
        "filters": rewards.FILTERS,
        "rewards": rewards.COLUMNS,
        "answers": answers.ANSWER_COLUMNS,
        "asked": answers.ASKED_COLUMNS,
        "rollouts": rollouts.COLUMNS,
        "licence": settings.DATA_LICENCE,
        "licence_url": settings.DATA_LICENCE_URL,
        "today": timezone.now(),
    }
    return render(request, "downloads.html", context)


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """Return robots.txt."""
    return render(request, "robots.txt", content_type="text/plain; charset=utf-8")


@require_safe
def join(request: HttpRequest) -> HttpResponse:
    """Show how to join, what it takes (download, disk space, time), and what is shared."""
    context = {
        "lines": _list_choices(write_install_lines(settings.SITE_URL)),
        "updates": _list_choices(write_update_lines(settings.SITE_URL)),
        "costs": _list_choices(COSTS),
        "link_megabits": LINK_MEGABITS,
        "anonymous": settings.ANONYMOUS_JOIN,
    }
    return render(request, "join.html", context)


def _list_choices(
    by_build: Mapping[Build, Mapping[Tool, Shown]],
) -> list[tuple[Build, Tool, Shown]]:
    """Return nested values as a list of (build, tool, value), for templates."""
    return [
        (build, tool, shown) for build, tools in by_build.items() for tool, shown in tools.items()
    ]


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for 404."""
    return render(request, "404.html", status=404)
