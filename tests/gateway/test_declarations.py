"""Declared rollouts through the gateway, and publishing by isolated nodes."""

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
from swarm_web.gateway.handlers.training import publish_rollouts
from swarm_web.relay.hub import hub
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout, make_season
from tests.gateway.conftest import Member
from tests.gateway.sessions import draw, read_counts, session_of, write_collected
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


async def test_declared_rollouts_are_drawn_first_with_the_informative_strategy(
    season: Season, amber: Member, bold: Member
) -> None:
    await share(amber, season, *"abcdefgh", informative=["c", "f"])
    assert await first_of(bold, 2) == {"c", "f"}
    assert await first_of(bold, 8) == set("abdegh")


async def test_declaration_of_an_unknown_rollout_is_ignored(
    season: Season, amber: Member, bold: Member
) -> None:
    await share(amber, season, *"ab", informative=["nowhere", "b"])
    assert await first_of(bold, 1) == {"b"}


async def test_rejected_declared_rollout_is_not_shared(
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


@pytest.mark.parametrize("allowed", [True, False])
async def test_isolated_node_publishes_only_if_the_season_allows_it(
    gateway: str, amber: Member, allowed: bool
) -> None:
    season = await sync_to_async(make_season)(isolated_publish=allowed)
    message = PublishRollouts(id="p", rollouts=[make_rollout(season)])
    async with node_socket(gateway, amber.token, greet=False) as socket:
        welcome = await join(socket, arm="isolated")
        assert welcome.season is not None
        assert welcome.season.isolated_publish is allowed
        reply = await socket.ask(message)
    assert isinstance(reply, RolloutsPublished)
    assert reply.accepted == int(allowed)
    assert len((await hub().open(season.pk)).window) == int(allowed)


async def test_rejected_isolated_publication_of_an_older_client_has_no_other_consequence(
    gateway: str, season: Season, amber: Member
) -> None:
    rollouts = [make_rollout(season) for _ in range(2)]
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await join(socket, arm="isolated")
        for _ in range(3):
            reply = await socket.ask(PublishRollouts(id="p", rollouts=rollouts))
            # Rejected one by one: a client's panel shows only a refused frame as an error.
            assert isinstance(reply, RolloutsPublished)
            rejected = [(item.item, item.code) for item in reply.rejected]
            assert rejected == [(rollout.id, "relay.isolated_publish") for rollout in rollouts]
            assert all(item.fix for item in reply.rejected)
        assert isinstance(await socket.ask(RequestRound(id="r")), RoundState)
    assert (await read_counts())["refused"] == {"relay.isolated_publish": 6}
    # The node is not at fault and its owner cannot fix this, so it is not noted.
    noted = await sync_to_async(read_refusals)(amber.node.pk)
    assert noted is not None
    assert noted.counts == {}
    await write_collected()
    assert not await Contribution.objects.aexists()
