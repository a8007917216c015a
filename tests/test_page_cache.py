"""Pages are kept for a moment, for anonymous visitors only, and never what is personal."""

import asyncio
import gzip
from typing import Any

import pytest
from django.conf import settings

from swarm_web.edge import page_cache
from swarm_web.edge.brief_cache import SharedState
from swarm_web.edge.page_cache import PageCache

Headers = dict[str, str]


class Site:
    """An ASGI application that counts how often it was asked, and waits while it is told to."""

    def __init__(self, *headers: tuple[bytes, bytes], status: int = 200) -> None:
        self.asked = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self._status, self._headers = status, headers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        # As Django does, which answers nobody whose request has not come to its end.
        assert (await receive())["type"] == "http.request"
        await self.goes_on.wait()
        body = b"page %d" % self.asked
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            *self._headers,
        ]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": body[:3], "more_body": True})
        await send({"type": "http.response.body", "body": body[3:]})


async def get(
    cache: PageCache, path: str = "/", query: str = "", **asked: str
) -> tuple[int, Headers, bytes]:
    """Ask for a page; header names are given with underscores."""
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in asked.items()]
    return await get_with(headers, cache, path, query)


async def get_with(
    headers: list[tuple[bytes, bytes]], cache: PageCache, path: str = "/", query: str = ""
) -> tuple[int, Headers, bytes]:
    """Ask for a page with headers as they are sent, in this order."""
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
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, b"".join(part["body"] for part in sent[1:])


async def test_a_page_is_made_once_for_all() -> None:
    cache = PageCache(site := Site(), seconds=60)
    assert [(await get(cache))[2] for _ in range(3)] == [b"page 1"] * 3
    assert site.asked == 1


@pytest.mark.parametrize("kind", [b"image/png", b"image/svg+xml", b"application/json"])
async def test_pictures_and_figures_are_kept_too(kind: bytes) -> None:
    cache = PageCache(site := Site((b"content-type", kind)), seconds=60)
    assert [(await get(cache))[2] for _ in range(2)] == [b"page 1"] * 2
    assert site.asked == 1


async def test_no_page_from_before_a_change_of_the_state_is_served() -> None:
    cache = PageCache(site := Site(), seconds=60, state=(state := SharedState()))
    await get(cache)
    state.renew(lambda: "changed")
    assert [(await get(cache))[2] for _ in range(2)] == [b"page 2"] * 2
    assert site.asked == 2


async def test_a_page_that_was_begun_before_a_change_is_not_served_after_it() -> None:
    cache = PageCache(site := Site(), seconds=60, state=(state := SharedState()))
    site.goes_on.clear()
    early = asyncio.create_task(get(cache))
    await asyncio.sleep(0)
    state.renew(lambda: "changed")
    site.goes_on.set()
    assert (await early)[2] == b"page 1"
    assert (await get(cache))[2] == b"page 2"


async def test_those_who_come_while_it_is_made_wait_for_it() -> None:
    cache = PageCache(site := Site(), seconds=60)
    site.goes_on.clear()
    visitors = [asyncio.create_task(get(cache)) for _ in range(5)]
    await asyncio.sleep(0)
    site.goes_on.set()
    assert {body for _, _, body in await asyncio.gather(*visitors)} == {b"page 1"}


async def test_a_page_that_is_too_old_is_made_anew() -> None:
    cache = PageCache(site := Site(), seconds=1e-9)
    await get(cache)
    await get(cache)
    assert site.asked == 2


async def test_nobody_waits_while_an_older_page_is_renewed() -> None:
    now = 0.0
    cache = PageCache(site := Site(), seconds=1, clock=lambda: now)
    await get(cache)
    now = 1.5
    site.goes_on.clear()
    assert [(await get(cache))[2] for _ in range(3)] == [b"page 1"] * 3
    await asyncio.sleep(0)
    assert site.asked == 2
    site.goes_on.set()
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
async def test_another_address_or_language_is_another_page(other: dict[str, str]) -> None:
    cache = PageCache(site := Site(), seconds=60)
    await get(cache)
    await get(cache, **other)
    await get(cache, **other)
    assert site.asked == 2


@pytest.mark.parametrize(
    "personal",
    [
        {"cookie": "sessionid=abc"},
        {"cookie": f"{settings.LANGUAGE_COOKIE_NAME}=fa; messages=hello"},
        {"authorization": "Bearer abc"},
        {"path": "/api/v1/rounds"},
        {"path": "/healthz"},
        # Whoever asks so may leave all who wait for the same page waiting for the rest.
        {"content_length": "10"},
        {"transfer_encoding": "chunked"},
    ],
)
async def test_what_is_personal_or_measured_is_never_kept(personal: dict[str, str]) -> None:
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
async def test_who_sends_a_header_twice_decides_nobody_elses_page(
    name: bytes, hidden: bytes, seen: bytes
) -> None:
    """Django joins the two and may go by the first: the key would be made of the last."""
    cache = PageCache(site := Site(), seconds=60)
    await get_with([(name, hidden), (name, seen)], cache)
    assert (await get_with([(name, seen)], cache))[2] == b"page 2"
    assert site.asked == 2


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
async def test_an_answer_that_is_not_for_everybody_is_passed_on(
    header: tuple[bytes, bytes], status: int
) -> None:
    cache = PageCache(site := Site(header, status=status), seconds=60)
    assert (await get(cache))[0] == status
    assert (await get(cache))[2] == b"page 2"
    assert site.asked == 2


async def test_all_who_wait_for_what_cannot_be_kept_are_answered() -> None:
    cache = PageCache(site := Site(status=404), seconds=60)
    site.goes_on.clear()
    visitors = [asyncio.create_task(get(cache)) for _ in range(5)]
    await asyncio.sleep(0)
    site.goes_on.set()
    assert {status for status, _, _ in await asyncio.gather(*visitors)} == {404}
    assert site.asked == 5


async def test_a_page_comes_compressed_to_those_who_can_read_it() -> None:
    cache = PageCache(Site(), seconds=60)
    _, headers, body = await get(cache, accept_encoding="gzip, br")
    assert headers["content-encoding"] == "gzip"
    assert int(headers["content-length"]) == len(body)
    assert gzip.decompress(body) == b"page 1"


async def test_who_has_the_page_gets_only_its_etag() -> None:
    cache = PageCache(Site(), seconds=60)
    etag = (await get(cache))[1]["etag"]
    status, headers, body = await get(cache, if_none_match=etag)
    assert (status, headers["etag"], body) == (304, etag, b"")


async def test_a_failure_reaches_the_visitor_and_is_forgotten() -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError

    cache = PageCache(fail, seconds=60)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await get(cache)


async def test_without_seconds_nothing_is_kept() -> None:
    cache = PageCache(site := Site(), seconds=0)
    await get(cache)
    await get(cache)
    assert site.asked == 2


class Workshop:
    """An ASGI application whose answers end when they may; `begun` tells of each that began."""

    def __init__(self, kind: bytes) -> None:
        self._streams = kind == b"text/csv"
        self.begun = asyncio.Queue[str]()
        self.goes_on = asyncio.Event()
        self._start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", kind), (b"content-length", b"3")],
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._streams:
            await send(self._start)
        self.begun.put_nowait(scope["path"])
        await self.goes_on.wait()
        if not self._streams:
            await send(self._start)
        await send({"type": "http.response.body", "body": b"row"})


async def begin(cache: PageCache, workshop: Workshop, *, count: int) -> list[asyncio.Task[Any]]:
    """Ask for three pages, and return when so many of them have begun."""
    visitors = [asyncio.create_task(get(cache, f"/{i}")) for i in range(3)]
    async with asyncio.timeout(5):
        for _ in range(count):
            await workshop.begun.get()
    return visitors


async def end(workshop: Workshop, visitors: list[asyncio.Task[Any]]) -> None:
    workshop.goes_on.set()
    assert [(await visitor)[0] for visitor in visitors] == [200] * 3


async def test_pages_are_made_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 60)
    cache = PageCache(workshop := Workshop(b"text/html"), seconds=60)
    visitors = await begin(cache, workshop, count=2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(workshop.begun.get(), timeout=0.05)
    await end(workshop, visitors)


async def test_nobody_waits_long_for_slow_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 0.01)
    cache = PageCache(workshop := Workshop(b"text/html"), seconds=60)
    await end(workshop, await begin(cache, workshop, count=3))


async def test_a_download_gives_its_turn_back_when_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_cache, "_PATIENCE_S", 60)
    cache = PageCache(workshop := Workshop(b"text/csv"), seconds=60)
    await end(workshop, await begin(cache, workshop, count=3))


async def test_who_downloads_slowly_holds_up_nobody_who_wants_the_same() -> None:
    cache = PageCache(workshop := Workshop(b"text/csv"), seconds=60)
    visitors = [asyncio.create_task(get(cache, "/rows")) for _ in range(3)]
    async with asyncio.timeout(5):
        for _ in visitors:
            await workshop.begun.get()
    await end(workshop, visitors)
