"""Pages of anonymous visitors are kept for a moment: in a rush each is made once for everyone.

An ASGI application around Django's, so that a kept page costs neither a thread nor a query. Kept
are whole answers to GET with status 200 that set no cookie, by host, address and language; who
brings any cookie but the language's, or one that marks a single page, gets pages of their own. A
page is made anew when somebody asks for it after PAGE_CACHE_SECONDS; meanwhile visitors get the one
before, which is at most twice as old. Who asks again because the live socket told of a change says
since when (`X-Since`), and gets no page from before. Kept pages are sent compressed, and have an
ETag.
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

# What is counted, limited, streamed or must be true at this moment.
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
# What an answer may vary by: all of it is in the key.
_VARIES = {b"accept-language", b"cookie", b"accept-encoding", b"hx-request", b"origin"}
# X-Since names a change by its moment: what is kept under it was asked for after that.
_IN_KEY = (b"host", b"x-forwarded-proto", b"hx-request", b"origin", b"x-since")
# Whoever sends one of these twice is answered by Django alone, which joins the two: read here, the
# page of one visitor would be kept for others.
_DECISIVE = {*_IN_KEY, b"accept-language", b"cookie"}
_VARY = b"Accept-Encoding, Accept-Language, Cookie, HX-Request, Origin, X-Since"
_LARGEST = 1_000_000
_MOST_PAGES = 256
# Digits of a database's largest key.
_LONGEST_MARK = 19
# More at once would take turns at the interpreter's lock, and all of them come later.
_MADE_AT_ONCE = 2
# For so long a page waits for its turn: a slow one holds up the others no longer.
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
    """A kept answer, plain and compressed, and when making it began."""

    headers: Headers
    etag: bytes
    body: bytes
    compressed: bytes
    begun_at: float

    async def send(self, asked: Asked, send: Send) -> None:
        """Answer with the page; only with its ETag to whoever has it."""
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
    """The pages of one process and event loop; those who ask for the same one wait for it.

    `marks` are cookies that hold a number and decide one page only: its path, by the cookie's name.
    `clock` returns seconds, by which pages age.
    """

    def __init__(
        self,
        application: Application,
        *,
        seconds: float,
        marks: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._seconds, self._marks = application, seconds, marks or {}
        self._clock = clock
        self._pages: dict[Key, Page] = {}
        self._making: dict[Key, asyncio.Future[Page | None]] = {}
        self._renewals: set[asyncio.Task[Page | None]] = set()
        self._turns = asyncio.Semaphore(_MADE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from what is kept, or let Django answer."""
        asked = dict(scope["headers"])
        key = read_key(scope, asked, marks=self._marks) if self._seconds > 0 else None
        if key is None:
            await self._application(scope, receive, send)
            return
        page = self._find(key)
        if page is not None and self._age(page) >= self._seconds and key not in self._making:
            self._renew(key, scope)
        if page is None and key in self._making:
            page = await asyncio.shield(self._making[key])
        if page is None:
            page = await self._make(key, scope, receive, send)
        if page is not None:
            await page.send(asked, send)

    def _find(self, key: Key) -> Page | None:
        page = self._pages.get(key)
        return page if page and self._age(page) < 2 * self._seconds else None

    def _age(self, page: Page) -> float:
        """Return how many seconds ago a page was true."""
        return self._clock() - page.begun_at

    def _renew(self, key: Key, scope: Scope) -> None:
        """Have a page made anew while visitors still get the one before: none of them waits."""

        request = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def hear_the_request() -> Message:
            # Django reads the body first; then it listens for a visitor who leaves, and none will.
            for message in request:
                return message
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        async def tell_nobody(_message: Message) -> None:
            pass

        # Noted here already: the task begins later, and the next visitor may come before.
        self._making[key] = asyncio.get_running_loop().create_future()
        renewal = asyncio.create_task(self._make(key, {**scope}, hear_the_request, tell_nobody))
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    async def _make(self, key: Key, scope: Scope, receive: Receive, send: Send) -> Page | None:
        """Let Django answer, and keep its answer and return it where that is allowed."""
        made = self._making.setdefault(key, asyncio.get_running_loop().create_future())
        turn = _Turn(self._turns)
        page = None

        def tell_waiting(page: Page | None) -> None:
            # Whoever waited for an answer that cannot be kept asks Django, too.
            if self._making.get(key) is made:
                del self._making[key]
            if not made.done():
                made.set_result(page)

        def start(*, is_kept: bool) -> None:
            turn.leave()
            if not is_kept:
                tell_waiting(None)  # Such an answer ends only when its visitor has read all of it.

        try:
            await turn.take()
            recorder = _Recorder(send, begun_at=self._clock(), on_start=start)
            await self._application(scope, receive, recorder.take)
            page = await recorder.finish()
        finally:
            turn.leave()
            tell_waiting(page)
        if page is not None:
            self._keep(key, page)
        return page

    def _keep(self, key: Key, page: Page) -> None:
        """Keep a page as the newest, and forget the oldest ones."""
        self._pages.pop(key, None)
        if self._age(page) >= 2 * self._seconds:
            return
        self._pages[key] = page
        # As each is put last when it is made, the oldest come first.
        for old in list(self._pages):
            if len(self._pages) <= _MOST_PAGES and self._find(old):
                break
            del self._pages[old]


class _Turn:
    """One of the few turns at making pages; whoever waits too long goes on without."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns, self._is_held = turns, False

    async def take(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._turns.acquire()
                self._is_held = True

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release()


class _Recorder:
    """Holds back an answer that may be kept; passes on any other as it comes.

    `on_start` is called when the answer begins, which is when a view has returned, with whether the
    answer may be kept.
    """

    def __init__(self, send: Send, *, begun_at: float, on_start: Callable[..., None]) -> None:
        self._send, self._begun_at, self._on_start = send, begun_at, on_start
        self._headers: Headers | None = None
        self._parts: list[bytes] = []

    async def take(self, message: Message) -> None:
        if is_start := message["type"] == "http.response.start":
            is_kept = may_be_kept(message)
            self._on_start(is_kept=is_kept)
        if is_start and is_kept:
            self._headers = list(message["headers"])
        elif self._headers is None:
            await self._send(message)
        else:
            self._parts.append(message.get("body", b""))

    async def finish(self) -> Page | None:
        """Return the whole answer, if it was held back."""
        if self._headers is None:
            return None
        body = b"".join(self._parts)
        own = (b"content-length", b"etag", b"vary")
        headers = [(name, value) for name, value in self._headers if name.lower() not in own]
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


def read_key(scope: Scope, asked: Asked, *, marks: Mapping[str, str]) -> Key | None:
    """Return what decides an anonymous visitor's page; None for requests that are never kept."""
    if scope["method"] != "GET" or scope["path"].startswith(_NEVER) or b"authorization" in asked:
        return None
    # Django answers once the whole body has arrived; until then all others would wait for it.
    if b"transfer-encoding" in asked or asked.get(b"content-length", b"0") != b"0":
        return None
    decisive = [name for name, _ in scope["headers"] if name in _DECISIVE]
    if len(decisive) > len(set(decisive)):
        return None
    request = HttpRequest()
    request.COOKIES = parse_cookie(asked.get(b"cookie", b"").decode("latin-1"))
    if set(request.COOKIES) - {settings.LANGUAGE_COOKIE_NAME, *marks}:
        return None
    request.META["HTTP_ACCEPT_LANGUAGE"] = asked.get(b"accept-language", b"").decode("latin-1")
    language = get_language_from_request(request)
    here = [name for name, path in marks.items() if path == scope["path"]]
    return (
        *(scope["scheme"], scope["path"], scope["query_string"], language),
        *(asked.get(name) for name in _IN_KEY),
        *(_read_mark(request.COOKIES.get(name, "")) for name in here),
    )


def _read_mark(value: str) -> str:
    """Return a number as it stands; nothing for what no page has set."""
    return value if value.isdecimal() and len(value) <= _LONGEST_MARK else ""


def may_be_kept(start: Message) -> bool:
    """Tell whether an answer, by its status and headers, is everybody's and whole."""
    headers = {name.lower(): value for name, value in start["headers"]}
    varies = {part.strip().lower() for part in headers.get(b"vary", b"").split(b",") if part}
    # Streams do not say how long they are.
    length = int(headers.get(b"content-length", _LARGEST))
    return (
        start["status"] == 200
        and length < _LARGEST
        and headers.get(b"content-type", b"").startswith(_KINDS)
        and b"content-encoding" not in headers
        and b"set-cookie" not in headers
        and not {b"no-store", b"private"}
        & {part.strip() for part in headers.get(b"cache-control", b"").split(b",")}
        and varies <= _VARIES
    )
