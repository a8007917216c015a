"""`swarm-node join` with an address without a coordinator, and with a coordinator that refuses."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from node_client.commands.problems import FAILED, REFUSED
from node_client.storage.state import NodeRecord, StateDir
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Hello
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.failures.ending import Ending, join
from tests.node_client.fakes import toy_policy

pytestmark = pytest.mark.slow

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(reply: bytes) -> Talk:
    """Return a handler that answers any request with `reply` and closes the connection."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(reply)
        await writer.drain()
        writer.close()

    return talk


PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
AWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
STRANGERS = {"page": PAGE, "404": NOT_FOUND, "closes": b"", "no HTTP": b"SSH-2.0-OpenSSH\r\n"}


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[str]:
    """Run a server and yield its address without a scheme."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


async def join_at(url: str, state: Path, *options: str, token: str = "t") -> Ending:
    return await asyncio.to_thread(join, url, state, *options, token=token)


@pytest.mark.parametrize("reply", STRANGERS.values(), ids=STRANGERS)
async def test_address_without_a_coordinator_is_reported(tmp_path: Path, reply: bytes) -> None:
    async with serving(answering(reply)) as address:
        ended = await join_at(f"http://{address}", tmp_path)
    assert ended.code == REFUSED
    assert f"http://{address} is not a coordinator" in ended.stderr
    assert "join page" in ended.stderr


async def test_https_address_of_a_server_without_tls_is_reported(tmp_path: Path) -> None:
    async with serving(answering(PAGE)) as address:
        ended = await join_at(f"https://{address}", tmp_path)
    assert ended.code == REFUSED
    assert "may begin with http://" in ended.stderr


async def test_first_join_fails_if_the_coordinator_does_not_answer(tmp_path: Path) -> None:
    async with serving(answering(AWAY)) as address:
        busy = await join_at(f"http://{address}", tmp_path)
    gone = await join_at(f"http://{address}", tmp_path)
    assert (busy.code, gone.code) == (FAILED, FAILED)
    assert "HTTP status 502" in busy.stderr
    for ended in (busy, gone):
        assert f"swarm-node doctor http://{address}" in ended.stderr


async def test_first_join_fails_immediately_if_the_host_name_is_unknown(tmp_path: Path) -> None:
    ended = await join_at("https://no-such-host.invalid", tmp_path)
    assert ended.code == FAILED
    assert "host name is not known" in ended.stderr


async def test_node_welcomed_earlier_trains_on_without_the_coordinator(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    async with serving(answering(AWAY)) as address:
        url, state = f"http://{address}", StateDir(tmp_path)
        state.save(NodeRecord(url=url, token="t", node="amber-quiet-heron"))
        options = ("--steps", "1", "--model", str(tmp_path / "model"), "--plain")
        ended = await join_at(url, tmp_path, *options)
    assert ended.code == 0, ended
    assert "continuing without it" in ended.out
    assert "saved a checkpoint at step 1" in ended.out


async def test_refused_token_ends_the_node_before_a_model_is_searched(tmp_path: Path) -> None:
    async with running(Coordinator()) as coordinator:
        ended = await join_at(coordinator.site.base, tmp_path, "--model", "./nope", token="wrong")
    assert ended.code == REFUSED
    assert "auth.invalid: This token is unknown." in ended.stderr
    assert "new one" in ended.stderr


async def test_outdated_client_ends_with_advice(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    coordinator = Coordinator()
    coordinator.refusals[Hello] = ErrorCode.CLIENT_TOO_OLD
    async with running(coordinator):
        options = ("--model", str(tmp_path / "model"), "--json")
        ended = await join_at(coordinator.site.base, tmp_path, *options, token="a-good-token")
    assert ended.code == REFUSED
    assert "client.too_old" in ended.stderr
    events = [json.loads(line)["event"] for line in ended.out.splitlines()]
    assert events[-2:] == ["problem", "stopped"]
