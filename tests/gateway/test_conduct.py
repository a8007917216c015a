"""Messages that a node should not send count as evidence of its conduct."""

from judge.models import Season
from swarm_protocol.messages import PublishRollouts
from swarm_web.gateway.process import write_collected
from swarm_web.relay.hub import hub
from swarm_web.relay.models import Conduct
from tests.factories import make_rollout
from tests.gateway.conftest import Member
from tests.sockets import node_socket


async def test_unreadable_messages_and_refused_rollouts_are_evidence(
    gateway: str, season: Season, amber: Member
) -> None:
    foreign = [make_rollout(season, index=2**31 - 1) for _ in range(2)]
    async with node_socket(gateway, amber.token) as sender:
        await sender.send("no json")
        await sender.hear()
        await sender.ask(PublishRollouts(id="p", rollouts=foreign))
    await write_collected()
    await hub().flush()
    row = await Conduct.objects.aget(node=amber.node, season=season)
    assert (row.refused, row.copies, row.hurried, row.pending) == (3, 0, 0, True)
