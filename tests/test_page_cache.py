"""Test the page cache: shared for anonymous requests, never used for personal ones."""

import asyncio
import gzip
from typing import Any

import pytest
from django.conf import settings

from swarm_web.edge import page_cache
from swarm_web.edge.brief_cache import SiteState
from swarm_web.edge.page_cache import PageCache

Headers = dict[str, str]


class Site:
    """An ASGI application that counts its requests and can be blocked with `unblocked`."""

    def __init__(self, *headers: tuple[bytes, bytes], status: int = 200) -> None:
        self.requests = 0
        self.unblocked = asyncio.Event()
        self.unblocked.set()
        self._status, self._headers = status, headers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests += 1
        # Like Django, which responds only after the complete request was received.
        assert (await receive())["type"] == "http.request"
        await self.unblocked.wait()
        body = b"page %d" % self.requests
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            *self._headers,
        ]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": body[:3], "more_body": True})
        await send({"type": "http.response.body", "body": body[3:]})


async def get(
    cache: PageCache, path: str = "/", query: str = "", **request_headers: str
) -> tuple[int, Headers, bytes]:
    """Request a page; header names are given with underscores."""
    headers = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in request_headers.items()
    ]
    return await get_with(headers, cache, path, query)


async def get_with(
    headers: list[tuple[bytes, bytes]], cache: PageCache, path: str = "/", query: str = ""
) -> tuple[int, Headers, bytes]:
    """Request a page with these headers, in this order."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "https",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"swarm.example"), *headers],
    }
    await cache(scope, receive, send)
    received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], received, b"".join(part["body"] for part in sent[1:])


async def test_page_is_rendered_once() -> None:
    cache = PageCache(site := Site(), seconds=60)
    assert [(await get(cache))[2] for _ in range(3)] == [b"page 1"] * 3
    assert site.requests == 1


@pytest.mark.parametrize("kind", [b"image/png", b"image/svg+xml", b"application/json"])
async def test_images_and_json_are_cached(kind: bytes) -> None:
    cache = PageCache(site := Site((b"content-type", kind)), seconds=60)
    assert [(await get(cache))[2] for _ in range(2)] == [b"page 1"] * 2
    assert site.requests == 1


async def test_page_is_rendered_again_after_a_change_of_the_state() -> None:
    cache = PageCache(site := Site(), seconds=60, state=(state := SiteState()))
    await get(cache)
    state.renew(lambda: "changed")
    assert [(await get(cache))[2] for _ in range(2)] == [b"page 2"] * 2
    assert site.requests == 2


async def test_page_started_before_a_change_of_the_state_is_not_cached() -> None:
    cache = PageCache(site := Site(), seconds=60, state=(state := SiteState()))
    site.unblocked.clear()
    early = asyncio.create_task(get(cache))
    await asyncio.sleep(0)
    state.renew(lambda: "changed")
    site.unblocked.set()
    assert (await early)[2] == b"page 1"
    assert (await get(cache))[2] == b"page 2"


async def test_concurrent_requests_wait_for_the_same_page() -> None:
    cache = PageCache(site := Site(), seconds=60)
    site.unblocked.clear()
    visitors = [asyncio.create_task(get(cache)) for _ in range(5)]
    await asyncio.sleep(0)
    site.unblocked.set()
    assert {body for _, _, body in await asyncio.gather(*visitors)} == {b"page 1"}


async def test_only_one_request_renders_the_page_after_the_first_visitor_has_left() -> None:
    site = Site()

    async def send_nothing(_message: Any) -> None:
        pass

    async def abandon_first(scope: Any, receive: Any, send: Any) -> None:
        await site(scope, receive, send if site.requests else send_nothing)

    cache = PageCache(abandon_first, seconds=60)
    site.unblocked.clear()
    visitors = [asyncio.create_task(get(cache)) for _ in range(5)]
    await asyncio.sleep(0)
    site.unblocked.set()
    first, *others = visitors
    assert {body for _, _, body in await asyncio.gather(*others)} == {b"page 2"}
    assert isinstance(first.exception(), IndexError)  # It got no response.
    assert site.requests == 2


async def test_expired_page_is_rendered_again() -> None:
    cache = PageCache(site := Site(), seconds=1e-9)
    await get(cache)
    await get(cache)
    assert site.requests == 2


async def test_stale_page_is_served_while_it_is_renewed() -> None:
    now = 0.0
    cache = PageCache(site := Site(), seconds=1, clock=lambda: now)
    await get(cache)
    now = 1.5
    site.unblocked.clear()
    assert [(await get(cache))[2] for _ in range(3)] == [b"page 1"] * 3
    await asyncio.sleep(0)
    assert site.requests == 2
    site.unblocked.set()
    await asyncio.gather(*cache._renewals)
    assert (await get(cache))[2] == b"page 2"


@pytest.mark.parametrize(
    "other",
    [
        {"path": "/rounds/"},
        {"query": "window=24h"},
        {"accept_language": "fa"},
        {"cookie": f"{settings.LANGUAGE_COOKIE_NAME}=fa"},
        {"x_forwarded_proto": "http"},
        {"hx_request": "true"},
        {"origin": "https://other.example"},
    ],
)
async def test_pages_are_cached_separately_by_url_language_and_headers(
    other: dict[str, str],
) -> None:
    cache = PageCache(site := Site(), seconds=60)
    await get(cache)
    await get(cache, **other)
    await get(cache, **other)
    assert site.requests == 2


@pytest.mark.parametrize(
    "personal",
    [
        {"cookie": "sessionid=abc"},
        {"cookie": f"{settings.LANGUAGE_COOKIE_NAME}=fa; messages=hello"},
        {"authorization": "Bearer abc"},
        {"path": "/api/v1/rounds"},
        {"path": "/healthz"},
        # A request with a body could block all others that wait for the same page.
        {"content_length": "10"},
        {"transfer_encoding": "chunked"},
    ],
)
async def test_personal_and_uncacheable_requests_are_not_cached(personal: dict[str, str]) -> None:
    cache = PageCache(Site(), seconds=60)
    await get(cache, **personal)
    assert (await get(cache, **personal))[2] == b"page 2"


@pytest.mark.parametrize(
    ("name", "hidden", "seen"),
    [
        (b"accept-language", b"fa", b"en"),
        (b"cookie", b"announcement=5; a=", f"{settings.LANGUAGE_COOKIE_NAME}=en".encode()),
        (b"x-forwarded-proto", b"http", b"https"),
        (b"origin", b"https://other.example", b"https://swarm.example"),
    ],
)
async def test_request_with_a_repeated_header_does_not_poison_the_cache(
    name: bytes, hidden: bytes, seen: bytes
) -> None:
    """Django joins both values and may use the first one; the key would contain the last one."""
    cache = PageCache(site := Site(), seconds=60)
    await get_with([(name, hidden), (name, seen)], cache)
    assert (await get_with([(name, seen)], cache))[2] == b"page 2"
    assert site.requests == 2


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ((b"set-cookie", b"a=b"), 200),
        ((b"cache-control", b"max-age=0, no-store"), 200),
        ((b"vary", b"User-Agent"), 200),
        ((b"content-encoding", b"br"), 200),
        ((b"content-type", b"text/csv"), 200),
        ((b"x-nothing", b""), 404),
    ],
)
async def test_uncacheable_response_is_passed_on(header: tuple[bytes, bytes], status: int) -> None:
    cache = PageCache(site := Site(header, status=status), seconds=60)
    assert (await get(cache))[0] == status
    assert (await get(cache))[2] == b"page 2"
    assert site.requests == 2


async def test_response_shorter_than_declared_is_passed_on() -> None:
    cache = PageCache(site := Site((b"content-length", b"100")), seconds=60)
    assert (await get(cache))[1]["content-length"] == "100"
    assert (await get(cache))[2] == b"page 2"
    assert site.requests == 2


async def test_requests_waiting_for_an_uncacheable_response_are_processed() -> None:
    cache = PageCache(site := Site(status=404), seconds=60)
    site.unblocked.clear()
    visitors = [asyncio.create_task(get(cache)) for _ in range(5)]
    await asyncio.sleep(0)
    site.unblocked.set()
    assert {status for status, _, _ in await asyncio.gather(*visitors)} == {404}
    assert site.requests == 5


async def test_page_is_compressed_if_the_client_accepts_it() -> None:
    cache = PageCache(Site(), seconds=60)
    _, headers, body = await get(cache, accept_encoding="gzip, br")
    assert headers["content-encoding"] == "gzip"
    assert int(headers["content-length"]) == len(body)
    assert gzip.decompress(body) == b"page 1"


async def test_unchanged_page_returns_304() -> None:
    cache = PageCache(Site(), seconds=60)
    etag = (await get(cache))[1]["etag"]
    status, headers, body = await get(cache, if_none_match=etag)
    assert (status, headers["etag"], body) == (304, etag, b"")


async def test_exception_is_raised_and_not_cached() -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError

    cache = PageCache(fail, seconds=60)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await get(cache)


async def test_cache_is_disabled_with_zero_seconds() -> None:
    cache = PageCache(site := Site(), seconds=0)
    await get(cache)
    await get(cache)
    assert site.requests == 2


class BlockedSite:
    """An ASGI application whose responses end when unblocked; `begun` has the started ones."""

    def __init__(self, kind: bytes) -> None:
        self._streams = kind == b"text/csv"
        self.begun = asyncio.Queue[str]()
        self.unblocked = asyncio.Event()
        self._start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", kind), (b"content-length", b"3")],
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._streams:
            await send(self._start)
        self.begun.put_nowait(scope["path"])
        await self.unblocked.wait()
        if not self._streams:
            await send(self._start)
        await send({"type": "http.response.body", "body": b"row"})


async def begin(cache: PageCache, site: BlockedSite, *, count: int) -> list[asyncio.Task[Any]]:
    """Request three pages, and return when `count` of them have started."""
    visitors = [asyncio.create_task(get(cache, f"/{i}")) for i in range(3)]
    async with asyncio.timeout(5):
        for _ in range(count):
            await site.begun.get()
    return visitors


async def end(site: BlockedSite, visitors: list[asyncio.Task[Any]]) -> None:
    site.unblocked.set()
    assert [(await visitor)[0] for visitor in visitors] == [200] * 3


async def test_at_most_two_pages_are_rendered_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 60)
    cache = PageCache(site := BlockedSite(b"text/html"), seconds=60)
    visitors = await begin(cache, site, count=2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(site.begun.get(), timeout=0.05)
    await end(site, visitors)


async def test_wait_for_a_turn_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 0.01)
    cache = PageCache(site := BlockedSite(b"text/html"), seconds=60)
    await end(site, await begin(cache, site, count=3))


async def test_download_releases_its_turn_when_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 60)
    cache = PageCache(site := BlockedSite(b"text/csv"), seconds=60)
    await end(site, await begin(cache, site, count=3))


async def test_slow_download_does_not_block_others_of_the_same_file() -> None:
    cache = PageCache(site := BlockedSite(b"text/csv"), seconds=60)
    visitors = [asyncio.create_task(get(cache, "/rows")) for _ in range(3)]
    async with asyncio.timeout(5):
        for _ in visitors:
            await site.begun.get()
    await end(site, visitors)
