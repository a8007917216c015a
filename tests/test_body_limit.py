"""Test that request bodies above the size limit are rejected while they are received."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest_asyncio
from django.conf import settings

from tests.sockets import PATIENCE_S, running_gateway

MOST: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
HEAD = "POST /account/login/ HTTP/1.1\r\nHost: localhost\r\n"
# The status for a form without a CSRF token.
REFUSED_BY_DJANGO = 403
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


class Poster:
    """A client that sends a request in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, text: str, *, body: int = 0) -> None:
        """Send a text, then a number of bytes."""
        self._writer.write(text.encode() + b"x" * body)
        await self._writer.drain()

    async def read_response(self) -> tuple[int, bytes]:
        """Return the status and the body of the response."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r")[0])
            return int(head.split()[1]), await self._reader.readexactly(length)


@pytest_asyncio.fixture
async def poster() -> AsyncIterator[Poster]:
    async with running_gateway() as url:
        host, port = url.removeprefix("ws://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        yield Poster(reader, writer)
        writer.close()


async def test_too_large_content_length_is_rejected_before_the_body_is_sent(poster: Poster) -> None:
    await poster.send(f"{HEAD}Content-Length: 150000000\r\n\r\n")
    status, body = await poster.read_response()
    assert status == 413
    assert json.loads(body).keys() == {"code", "message", "fix"}


async def test_too_large_body_without_a_length_is_rejected(
    poster: Poster,
) -> None:
    await poster.send(f"{HEAD}{CHUNKED}{MOST + 1:x}\r\n", body=MOST + 1)
    status, body = await poster.read_response()
    assert status == 413
    assert json.loads(body)["code"] == "request.too_large"


async def test_connection_remains_usable_after_a_rejected_body_was_sent_completely(
    poster: Poster,
) -> None:
    await poster.send(f"{HEAD}Content-Length: {MOST + 1}\r\n\r\n", body=MOST + 1)
    assert (await poster.read_response())[0] == 413
    await poster.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await poster.read_response())[0] == 200


async def test_largest_body_is_accepted(poster: Poster) -> None:
    await poster.send(f"{HEAD}Content-Length: {MOST}\r\n\r\n", body=MOST)
    assert (await poster.read_response())[0] == REFUSED_BY_DJANGO


async def test_content_length_may_have_thousands_of_leading_zeros(poster: Poster) -> None:
    await poster.send(f"{HEAD}Content-Length: {'0' * 5000}7\r\n\r\n", body=7)
    assert (await poster.read_response())[0] == REFUSED_BY_DJANGO
