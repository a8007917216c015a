"""Putting an announcement away."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from swarm_web.dashboard.models import Announcement

COOKIE = "announcement"
_KEPT_S = 30 * 86_400


# The page is the same for everybody, so it holds no token; who forges this hides a text.
@csrf_exempt
@require_POST
def dismiss(_request: HttpRequest, pk: int) -> HttpResponse:
    """Show this visitor the announcement no more."""
    answer = redirect("home")
    answer.set_cookie(COOKIE, str(pk), max_age=_KEPT_S, httponly=True, samesite="Lax")
    return answer


def find_announcement(request: HttpRequest) -> Announcement | None:
    """Return what is announced now, unless this visitor has put it away."""
    shown = Announcement.objects.shown(now=timezone.now()).first()
    if shown is None or request.COOKIES.get(COOKIE) == str(shown.pk):
        return None
    return shown
