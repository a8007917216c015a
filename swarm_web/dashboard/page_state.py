"""Gives each page a state token: a text that changes when pages must show something new.

`edge.brief_cache` describes the token. Live messages contain the current token (`live.views`); a
browser whose page has another token fetches the page again (`static/js/live.js`).
"""

from collections.abc import Callable

from django.conf import settings
from django.db import Error
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware

from swarm_web.dashboard.language import FOR_PROGRAMS
from swarm_web.dashboard.reports.home import read_state
from swarm_web.edge.brief_cache import site_state

Answer = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def stamp_state(get_response: Answer) -> Answer:
    """Middleware that sets `request.page_state` to the state token, for a GET or HEAD of a page.

    The token is read before the view reads any data. So the page's data is never older than the
    state that its token identifies.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        # Addresses of files do not end with a slash.
        is_page = request.path.endswith("/") and not request.path.startswith(FOR_PROGRAMS)
        if is_page and request.method in ("GET", "HEAD"):
            request.page_state = _recall_state()  # type: ignore[attr-defined]
        return get_response(request)

    return middleware


def _recall_state() -> str:
    try:
        return site_state.recall(read_state, max_age_s=settings.PAGE_CACHE_SECONDS)
    except Error:
        # The status page works without a database.
        return site_state.token
