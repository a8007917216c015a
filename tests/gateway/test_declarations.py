"""Declared rollouts on their way through the gateway, and who may publish at all."""

import pytest
from asgiref.sync import sync_to_async

from judge.models import Season
from swarm_protocol.messages import (
    Arm,
    PublishRollouts,
    RequestRollouts,
    RequestRound,
    RolloutsPublished,
    RoundState,
    Welcome,
)
from swarm_web.core.refusals import read_refusals
from swarm_web.gateway.handlers.hello import handle_hello
from swarm_web.gateway.handlers.training import publish_rollouts
from swarm_web.gateway.process import write_collected
from swarm_web.relay.hub import hub
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout, make_season
from tests.gateway.conftest import Member
from tests.gateway.sessions import draw, read_counts, session_of
from tests.sockets import NodeSocket, node_socket

# ---- declared rollouts


async def share(member: Member, season: Season, *ids: str, informative: list[str]) -> None:
    rollouts = [make_rollout(season, rollout_id=name) for name in ids]
    await publish_rollouts(
        session_of(member), PublishRollouts(id="p", rollouts=rollouts, informative=informative)
    )


async def first_of(member: Member, count: int) -> set[str]:
    request = RequestRollouts(id="r", count=count, prefer="informative")
    given = (await draw(session_of(member), request)).rollouts
    return {external.rollout.id for external in given}


async def test_a_welcome_tells_that_declarations_are_known(season: Season, amber: Member) -> None:
    session = session_of(amber)
    session.greeted = False
    assert (await handle_hello(session, make_hello())).declarations


async def test_declared_rollouts_come_first_for_who_prefers_them(
    season: Season, amber: Member, bold: Member
) -> None:
    await share(amber, season, *"abcdefgh", informative=["c", "f"])
    assert await first_of(bold, 2) == {"c", "f"}
    assert await first_of(bold, 8) == set("abdegh")


async def test_an_id_that_names_none_of_the_rollouts_is_ignored(
    season: Season, amber: Member, bold: Member
) -> None:
    await share(amber, season, *"ab", informative=["nowhere", "b"])
    assert await first_of(bold, 1) == {"b"}


async def test_a_declared_rollout_that_is_rejected_is_not_shared(
    season: Season, amber: Member, bold: Member
) -> None:
    foreign = make_rollout(season, rollout_id="foreign", index=2**31 - 1)
    message = PublishRollouts(id="p", rollouts=[foreign], informative=["foreign"])
    assert (await publish_rollouts(session_of(amber), message)).accepted == 0
    assert await first_of(bold, 1) == set()


# ---- isolated nodes


async def join(socket: NodeSocket, *, arm: Arm) -> Welcome:
    welcome = await socket.ask(make_hello(arm=arm))
    assert isinstance(welcome, Welcome)
    return welcome


@pytest.mark.parametrize("gives", [True, False])
async def test_an_isolated_node_publishes_where_the_season_lets_it(
    gateway: str, amber: Member, gives: bool
) -> None:
    season = await sync_to_async(make_season)(isolated_publish=gives)
    message = PublishRollouts(id="p", rollouts=[make_rollout(season)])
    async with node_socket(gateway, amber.token, greet=False) as socket:
        welcome = await join(socket, arm="isolated")
        assert welcome.season is not None
        assert welcome.season.isolated_publish is gives
        reply = await socket.ask(message)
    assert isinstance(reply, RolloutsPublished)
    assert reply.accepted == int(gives)
    assert len((await hub().open(season.pk)).window) == int(gives)


async def test_an_older_client_that_publishes_anyway_is_told_so_and_left_in_peace(
    gateway: str, season: Season, amber: Member
) -> None:
    rollouts = [make_rollout(season) for _ in range(2)]
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await join(socket, arm="isolated")
        for _ in range(3):
            reply = await socket.ask(PublishRollouts(id="p", rollouts=rollouts))
            # Rejected one by one: only a refused frame is an error in a client's panel.
            assert isinstance(reply, RolloutsPublished)
            told = [(item.item, item.code) for item in reply.rejected]
            assert told == [(rollout.id, "relay.isolated_publish") for rollout in rollouts]
            assert all(item.fix for item in reply.rejected)
        assert isinstance(await socket.ask(RequestRound(id="r")), RoundState)
    assert (await read_counts())["refused"] == {"relay.isolated_publish": 6}
    # Neither a fault of the node's nor something that its owner could mend.
    noted = await sync_to_async(read_refusals)(amber.node.pk)
    assert noted is not None
    assert noted.counts == {}
    await write_collected()
    assert not await Contribution.objects.aexists()


async def test_a_node_of_the_swarm_publishes_in_every_season(season: Season, amber: Member) -> None:
    reply = await publish_rollouts(
        session_of(amber), PublishRollouts(id="p", rollouts=[make_rollout(season)])
    )
    assert reply.accepted == 1
