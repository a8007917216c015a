"""Pages of accounts are kept by no cache, those of allauth included: some show a secret once."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import sync_only_middleware

_PAGES = "/account/"

Answer = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def keep_private(get_response: Answer) -> Answer:
    """Tell browsers and proxies to keep no page of an account."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.path.startswith(_PAGES):
            add_never_cache_headers(response)
        return response

    return middleware
