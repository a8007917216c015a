"""A short-lived cache of pages for anonymous visitors, who share one rendering of each page.

This is ASGI middleware around Django, so a cached page needs neither a thread nor a query. It
caches complete responses to GET with status 200 that set no cookie (`may_be_kept`), by host, path,
query, language and the other values of `read_key`. A request with a cookie other than the language
cookie bypasses the cache. A page is rendered again at the first request after PAGE_CACHE_SECONDS;
until the new page is ready, visitors get the old page, up to an age of 2 * PAGE_CACHE_SECONDS. Once
this process has read a new state of the site (`edge.brief_cache`), later requests get no page of an
older state. Cached pages are compressed and have an ETag.
"""

import asyncio
import contextlib
import gzip
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, parse_cookie
from django.utils.translation import get_language_from_request

from swarm_web.edge.brief_cache import SiteState, site_state

# Responses that are counted, limited, streamed, or must be current.
_NEVER = (
    "/api/",
    "/admin/",
    "/account/",
    "/device/",
    "/static/",
    "/simple/",
    "/metrics",
    "/healthz",
    "/readyz",
)
_KINDS = (b"text/html", b"application/json", b"image/png", b"image/svg+xml")
# Headers that a cached response may vary by: the key or this middleware takes each into account.
_VARIES = {b"accept-language", b"cookie", b"accept-encoding", b"hx-request", b"origin"}
_IN_KEY = (b"host", b"x-forwarded-proto", b"hx-request", b"origin")
# A request that repeats one of these is left to Django, which joins the values: the cache would
# read only one of them and store one visitor's page for others.
_DECISIVE = {*_IN_KEY, b"accept-language", b"cookie"}
_VARY = b"Accept-Encoding, Accept-Language, Cookie, HX-Request, Origin"
_LARGEST = 1_000_000
_MOST_PAGES = 256
# More pages at once would compete for the interpreter's lock, which delays all of them.
_MADE_AT_ONCE = 2
# The longest wait for a turn; then a page is made without one, so that slow pages do not block it.
_PATIENCE_S = 1.0

Key = tuple[Any, ...]
Headers = list[tuple[bytes, bytes]]
Asked = dict[bytes, bytes]
Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Page:
    """A cached response with its body, plain and gzipped; `begun_at` is when its creation began."""

    headers: Headers
    etag: bytes
    body: bytes
    compressed: bytes
    begun_at: float

    async def send(self, asked: Asked, send: Send) -> None:
        """Send the page, or 304 if the request's headers `asked` name its ETag."""
        status, body, headers = 200, self.body, [*self.headers, (b"etag", self.etag)]
        if self.etag in asked.get(b"if-none-match", b""):
            status, body = 304, b""
        elif b"gzip" in asked.get(b"accept-encoding", b""):
            body = self.compressed
            headers.append((b"content-encoding", b"gzip"))
        if status == 200:
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class PageCache:
    """The page cache of one event loop; concurrent requests for a page share one rendering.

    `seconds` is the age at which a page is rendered again (PAGE_CACHE_SECONDS); with 0 nothing is
    cached. `clock` returns seconds.
    """

    def __init__(
        self,
        application: Application,
        *,
        seconds: float,
        state: SiteState = site_state,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._seconds, self._clock = application, seconds, clock
        self._state = state
        self._pages: dict[Key, Page] = {}
        self._making: dict[Key, asyncio.Future[Page | None]] = {}
        self._renewals: set[asyncio.Task[Page | None]] = set()
        self._turns = asyncio.Semaphore(_MADE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request: respond from the cache, or call Django."""
        asked = dict(scope["headers"])
        key = read_key(scope, asked, self._state.token) if self._seconds > 0 else None
        if key is None:
            await self._application(scope, receive, send)
            return
        page = self._find(key)
        if page is not None and self._age(page) >= self._seconds and key not in self._making:
            self._renew(key, scope)
        if page is None:
            page = await self._wait(key)
        if page is None:
            page = await self._make(key, scope, receive, send)
        if page is not None:
            await page.send(asked, send)

    def _find(self, key: Key) -> Page | None:
        page = self._pages.get(key)
        return page if page and self._age(page) < 2 * self._seconds else None

    async def _wait(self, key: Key) -> Page | None:
        """Wait while another request renders a page, and return the page.

        Returns None if no request renders it, or if the response cannot be cached.
        """
        while (made := self._making.get(key)) is not None:
            await asyncio.wait([made])
            if not made.cancelled():
                return made.result()
        return None

    def _age(self, page: Page) -> float:
        """Return the number of seconds since the creation of a page began."""
        return self._clock() - page.begun_at

    def _renew(self, key: Key, scope: Scope) -> None:
        """Render a page again in the background, while visitors get the old one without waiting."""

        request = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def hear_the_request() -> Message:
            # Django reads the body first, then waits for a disconnect, which never happens here.
            for message in request:
                return message
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        async def tell_nobody(_message: Message) -> None:
            pass

        # Registered now, because the task starts later and another request may come first.
        self._making[key] = asyncio.get_running_loop().create_future()
        renewal = asyncio.create_task(self._make(key, {**scope}, hear_the_request, tell_nobody))
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    async def _make(self, key: Key, scope: Scope, receive: Receive, send: Send) -> Page | None:
        """Call Django, and cache and return its response.

        If the response may not be cached, it is sent with `send` instead, and None is returned.
        """
        made = self._making.setdefault(key, asyncio.get_running_loop().create_future())
        turn = contextlib.ExitStack()
        page = None

        def tell_waiting(page: Page | None) -> None:
            # Waiting requests call Django themselves if the response cannot be cached.
            if self._making.get(key) is made:
                del self._making[key]
            if not made.done():
                made.set_result(page)

        def start(*, is_kept: bool) -> None:
            turn.close()
            if not is_kept:
                tell_waiting(None)  # Such a response ends only after its client has read all of it.

        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._turns.acquire()
                    turn.callback(self._turns.release)
            recorder = _Recorder(send, begun_at=self._clock(), on_start=start)
            await self._application(scope, receive, recorder.take)
            page = await recorder.finish()
        finally:
            turn.close()
            if page is None:
                # If nothing was sent because the client left, one of the waiting requests is next.
                made.cancel()
            tell_waiting(page)
        if page is not None:
            self._keep(key, page)
        return page

    def _keep(self, key: Key, page: Page) -> None:
        """Store a page unless it has expired.

        Then remove pages, the oldest first, until at most _MOST_PAGES remain and the oldest of the
        remaining pages has not expired.
        """
        self._pages.pop(key, None)
        if self._age(page) >= 2 * self._seconds:
            return
        self._pages[key] = page
        # Each page is inserted last, so the oldest come first.
        for old in list(self._pages):
            if len(self._pages) <= _MOST_PAGES and self._find(old):
                break
            del self._pages[old]


class _Recorder:
    """Records a response that may be cached; forwards any other to `send` as it arrives.

    `on_start` is called when the response begins, which is after the view has returned. Its
    argument `is_kept` is whether the response is recorded.
    """

    def __init__(self, send: Send, *, begun_at: float, on_start: Callable[..., None]) -> None:
        self._send, self._begun_at, self._on_start = send, begun_at, on_start
        self._start: Message | None = None
        self._parts: list[bytes] = []

    async def take(self, message: Message) -> None:
        if is_start := message["type"] == "http.response.start":
            is_kept = may_be_kept(message)
            self._on_start(is_kept=is_kept)
        if is_start and is_kept:
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._parts.append(message.get("body", b""))

    async def finish(self) -> Page | None:
        """Return the recorded response as a page; None if the response was forwarded instead.

        A response whose body is not as long as declared is forwarded too: it failed midway.
        """
        if self._start is None:
            return None
        body = b"".join(self._parts)
        if len(body) != _declared_length(self._start):
            await self._send(self._start)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            return None
        own = (b"content-length", b"etag", b"vary")
        headers = [
            (name, value) for name, value in self._start["headers"] if name.lower() not in own
        ]
        headers.append((b"vary", _VARY))
        if not any(name.lower() == b"cache-control" for name, _ in headers):
            headers.append((b"cache-control", b"no-cache"))
        return Page(
            headers=headers,
            etag=b'W/"' + hashlib.sha256(body).hexdigest()[:24].encode() + b'"',
            body=body,
            compressed=await asyncio.to_thread(gzip.compress, body, 5, mtime=0),
            begun_at=self._begun_at,
        )


def read_key(scope: Scope, asked: Asked, state: str) -> Key | None:
    """Return the cache key of a request: all that an anonymous visitor's page depends on.

    `asked` are the request's headers, `state` is the token of the site's state
    (`edge.brief_cache`). Returns None if the request bypasses the cache.
    """
    if scope["method"] != "GET" or scope["path"].startswith(_NEVER) or b"authorization" in asked:
        return None
    # Django responds once the whole body has arrived; until then all others would wait.
    if b"transfer-encoding" in asked or asked.get(b"content-length", b"0") != b"0":
        return None
    decisive = [name for name, _ in scope["headers"] if name in _DECISIVE]
    if len(decisive) > len(set(decisive)):
        return None
    request = HttpRequest()
    request.COOKIES = parse_cookie(asked.get(b"cookie", b"").decode("latin-1"))
    if set(request.COOKIES) - {settings.LANGUAGE_COOKIE_NAME}:
        return None
    request.META["HTTP_ACCEPT_LANGUAGE"] = asked.get(b"accept-language", b"").decode("latin-1")
    language = get_language_from_request(request)
    return (
        *(state, scope["scheme"], scope["path"], scope["query_string"], language),
        *(asked.get(name) for name in _IN_KEY),
    )


def may_be_kept(start: Message) -> bool:
    """Return whether a response may be cached, from its ASGI start message.

    The response must be complete HTML, JSON, PNG or SVG, and must declare a length below _LARGEST.
    It must also be the same for all visitors whose requests have the same key (`read_key`). Only
    its status and headers are checked.
    """
    headers = {name.lower(): value for name, value in start["headers"]}
    varies = {part.strip().lower() for part in headers.get(b"vary", b"").split(b",") if part}
    return (
        start["status"] == 200
        and _declared_length(start) < _LARGEST
        and headers.get(b"content-type", b"").startswith(_KINDS)
        and b"content-encoding" not in headers
        and b"set-cookie" not in headers
        and not {b"no-store", b"private"}
        & {part.strip() for part in headers.get(b"cache-control", b"").split(b",")}
        and varies <= _VARIES
    )


def _declared_length(start: Message) -> int:
    """Return the Content-Length of a response in bytes; _LARGEST if it is a stream without one."""
    headers = {name.lower(): value for name, value in start["headers"]}
    return int(headers.get(b"content-length", _LARGEST))
