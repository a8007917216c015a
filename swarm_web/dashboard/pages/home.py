"""The home page, and the announcement on it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from swarm_web.dashboard.reports.board import read_lines
from swarm_web.dashboard.reports.compare import read_comparison
from swarm_web.dashboard.reports.home import current_announcement, read_home
from swarm_web.dashboard.reports.lab import read_answer, sketch_answer

COOKIE = "announcement"
_KEPT_S = 30 * 86_400


# The page is cached for everybody, so it has no token. A forged request only hides a text.
@csrf_exempt
@require_POST
def dismiss(_request: HttpRequest, pk: int) -> HttpResponse:
    """Hide the announcement from this visitor."""
    answer = redirect("home")
    answer.set_cookie(COOKIE, str(pk), max_age=_KEPT_S, httponly=True, samesite="Lax")
    return answer


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the current state, the leaders, whether sharing helps, and how to join."""
    now = timezone.now()
    report, answer = read_home(now=now), read_answer()
    announcement = current_announcement(now=now)
    is_dismissed = announcement and request.COOKIES.get(COOKIE) == str(announcement.pk)
    context = {
        "announcement": None if is_dismissed else announcement,
        "home": report,
        "board": report.board,
        "lines": read_lines(report.board),
        "answer": answer,
        "sketch": sketch_answer(answer),
        "comparison": read_comparison(),
    }
    return render(request, "home.html", context)
