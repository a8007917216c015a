"""Test that a process does not start with a Redis that lacks required commands."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis.asyncio
from pytest_django import Settings

from swarm_web.asgi import application
from swarm_web.celery import refuse_old_store
from swarm_web.core.store import async_redis
from swarm_web.core.store_version import StoreTooOldError, check_store
from swarm_web.local.databases import prepare_valkey
from tests.processes import running


@pytest.fixture(scope="module")
def old_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server without streams, like Redis before 5.0."""
    folder = tmp_path_factory.mktemp("old")
    server = prepare_valkey(folder)
    with (folder / "valkey.conf").open("a") as configuration:
        configuration.write('rename-command XTRIM ""\n')
    with running(server.process, log=folder / "log"):
        yield server.url


@pytest_asyncio.fixture
async def tidy_store() -> Any:
    yield
    await async_redis().aclose()


async def test_web_process_does_not_start_with_an_old_server(
    old_redis: str, settings: Settings, tidy_store: None
) -> None:
    settings.REDIS_URL = old_redis
    sent: asyncio.Queue[Any] = asyncio.Queue()

    async def start() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    await application({"type": "lifespan", "asgi": {}}, start, sent.put)
    answer = sent.get_nowait()
    assert answer["type"] == "lifespan.startup.failed"
    assert answer["message"].startswith("store.too_old: ")
    assert "Redis 6.2" in answer["message"]


def test_worker_does_not_start_with_an_old_server(old_redis: str, settings: Settings) -> None:
    settings.REDIS_URL = old_redis
    with pytest.raises(SystemExit, match=r"store\.too_old"):
        refuse_old_store()


class Answering:
    """A server that rejects all commands with a given error."""

    def __init__(self, problem: redis.exceptions.RedisError) -> None:
        self._problem = problem

    async def xtrim(self, *_: object, **_options: object) -> None:
        raise self._problem


@pytest.mark.parametrize(
    ("problem", "too_old"),
    [
        (redis.exceptions.ResponseError("syntax error, try again"), True),
        (redis.exceptions.ReadOnlyError("You can't write against a read only replica."), False),
        (redis.exceptions.ConnectionError("gone"), False),
    ],
)
async def test_only_a_syntax_error_means_that_the_server_is_too_old(
    problem: redis.exceptions.RedisError, too_old: bool
) -> None:
    client: Any = Answering(problem)
    if too_old:
        with pytest.raises(StoreTooOldError):
            await check_store(client)
    else:
        await check_store(client)


async def test_server_of_the_tests_passes_the_version_check(tidy_store: None) -> None:
    await check_store(async_redis())
