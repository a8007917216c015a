"""The visitor's language: chosen with `?lang=`, stored in a cookie, by default the browser's."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_only_middleware
from django.utils.http import escape_leading_slashes

PARAMETER = "lang"
# Paths of responses to programs and of operators' pages: always in English, and never live.
FOR_PROGRAMS = (
    *("/admin/", "/api/v1/", "/api/openapi.json", "/simple/"),
    *("/metrics", "/healthz", "/readyz", "/robots.txt", "/favicon.ico"),
)

GetResponse = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def speak_language(get_response: GetResponse) -> GetResponse:
    """Middleware that answers in the visitor's language, except on the paths FOR_PROGRAMS.

    If `?lang=` of a GET or HEAD names one of the site's languages, the answer is a redirect that
    stores the language in a cookie. Any other `?lang=` is ignored. This middleware replaces
    Django's LocaleMiddleware, which would leave the language active in the thread, and would
    translate responses to programs.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(FOR_PROGRAMS):
            return get_response(request)
        if chosen := _read_choice(request):
            return _store_language(request, chosen)
        with translation.override(translation.get_language_from_request(request)):
            return _set_headers(get_response(request))

    return middleware


def _read_choice(request: HttpRequest) -> str | None:
    """Return the language that a GET or HEAD requests with `?lang=`.

    None if the request names no language, or a language that the site does not have.
    """
    if request.method not in ("GET", "HEAD"):
        return None
    chosen = request.GET.get(PARAMETER, "")
    return chosen if chosen in dict(settings.LANGUAGES) else None


def _store_language(request: HttpRequest, language: str) -> HttpResponseBase:
    """Return a redirect that sets the language cookie and leads to the page without `?lang=`."""
    query = request.GET.copy()
    del query[PARAMETER]
    # Two leading slashes would redirect to another site.
    address = escape_leading_slashes(request.path)
    response = HttpResponseRedirect(f"{address}?{query.urlencode()}" if query else address)
    response["Cache-Control"] = "no-store"
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        httponly=True,
        samesite="Lax",
        secure=settings.LANGUAGE_COOKIE_SECURE,
    )
    return response


def _set_headers(response: HttpResponseBase) -> HttpResponseBase:
    """Return the response with the headers Content-Language and Vary added to it."""
    response.headers.setdefault("Content-Language", translation.get_language() or "")
    patch_vary_headers(response, ("Accept-Language", "Cookie"))
    return response
