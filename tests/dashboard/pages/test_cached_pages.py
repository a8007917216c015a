"""Test the site's own pages behind the page cache, which is disabled in DEBUG mode."""

import asyncio
from typing import Any

import pytest
from django.core.asgi import get_asgi_application

from swarm_web.edge.brief_cache import SiteState
from swarm_web.edge.page_cache import PageCache

pytestmark = pytest.mark.usefixtures("tidy_stores")
PATIENCE_S = 20


async def get(cache: PageCache, path: str) -> bytes:
    """Request a page like uvicorn, and return its body."""
    sent: list[Any] = []
    request = asyncio.Queue[Any]()
    request.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await cache(scope, request.get, send)
    assert sent[0]["status"] == 200
    return b"".join(part["body"] for part in sent[1:])


@pytest.mark.parametrize("path", ["/", "/leaderboard/", "/rounds/", "/lab/"])
async def test_stale_page_is_served_and_renewed_in_the_background(path: str) -> None:
    now = 0.0
    cache = PageCache(get_asgi_application(), seconds=1, state=SiteState(), clock=lambda: now)
    async with asyncio.timeout(PATIENCE_S):
        first = await get(cache, path)
        now = 1.5
        assert await get(cache, path) == first
        (renewal,) = cache._renewals
        assert await renewal is not None
