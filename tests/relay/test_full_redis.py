"""The relay on a full Redis with `maxmemory-policy noeviction`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import redis.asyncio
import redis.exceptions

from judge.models import Season
from swarm_web.local.databases import prepare_valkey
from swarm_web.nodes.models import Node
from swarm_web.relay.keys import season_key
from tests.processes import running as running_part
from tests.relay.hubs import NOW, join, make_hub, publish, running

pytestmark = pytest.mark.usefixtures("tidy_stores")


@pytest_asyncio.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[redis.asyncio.Redis]:
    """Yield a client of a separate Valkey that the test may fill."""
    server = prepare_valkey(tmp_path / "valkey")
    with running_part(server.process, log=tmp_path / "valkey.log"):
        client = redis.asyncio.Redis.from_url(server.url)
        yield client
        await client.aclose()


async def test_expired_rollouts_are_deleted_from_a_full_redis(
    season: Season, amber: Node, own_redis: redis.asyncio.Redis
) -> None:
    now = [NOW]
    hub = make_hub(own_redis, clock=lambda: now[0], max_age_s=600)
    async with running(hub):
        pool, [one] = await join(hub, season.pk, amber)
        publish(pool, one, "a", text="x" * 5000)
        await hub.flush()
        await own_redis.config_set("maxmemory", 1)
        now[0] += 601
        publish(pool, one, "b", text="x" * 5000, now=now[0])
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            await hub.flush()
        assert not await own_redis.keys(season_key(season.pk, "stream:*"))
        await own_redis.config_set("maxmemory", 0)
