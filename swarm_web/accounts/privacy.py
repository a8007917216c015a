"""Prevents caching of account pages, including those of allauth: some show a secret once."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import sync_only_middleware

_PAGES = "/account/"

GetResponse = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def keep_private(get_response: GetResponse) -> GetResponse:
    """Return the middleware, which adds headers against caching to account pages."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.path.startswith(_PAGES):
            add_never_cache_headers(response)
        return response

    return middleware
