"""Notes of refused frames and rollouts, which the node's page shows."""

import pytest
from asgiref.sync import sync_to_async

from judge.models import Season
from swarm_protocol.messages import PublishRollouts, RolloutsPublished
from swarm_web.core.refusals import read_refusals
from tests.factories import make_rollout
from tests.gateway.conftest import Member
from tests.gateway.sessions import write_collected
from tests.sockets import node_socket


async def test_refused_frames_and_rollouts_are_noted(
    gateway: str, season: Season, amber: Member, bold: Member
) -> None:
    foreign = [make_rollout(season, index=2**31 - 1) for _ in range(2)]
    async with node_socket(gateway, amber.token) as sender:
        await sender.send("no json")
        await sender.hear()
        reply = await sender.ask(PublishRollouts(id="p", rollouts=foreign))
        assert isinstance(reply, RolloutsPublished)
    await write_collected()
    noted = await sync_to_async(read_refusals)(amber.node.pk)
    assert noted is not None
    assert noted.counts == {"protocol.not_json": 1, "task.index": 2}
    assert noted.last is not None
    assert noted.last.code == "task.index"
    others = await sync_to_async(read_refusals)(bold.node.pk)
    assert others is not None
    assert (others.counts, others.last) == ({}, None)


@pytest.mark.usefixtures("redis_away")
def test_read_refusals_returns_none_while_redis_is_down() -> None:
    assert read_refusals(1) is None
