"""Message handlers, called without a socket."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from judge.models import Season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    PublishRollouts,
    RequestRollouts,
    RequestStanding,
)
from swarm_web.gateway.handlers.hello import handle_hello
from swarm_web.gateway.handlers.standing import get_standing
from swarm_web.gateway.handlers.training import draw_rollouts, publish_rollouts
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, draw, session_of, write_collected

# ---- rollouts and training


async def test_published_rollout_is_delivered_to_another_node(
    season: Season, amber: Member, bold: Member
) -> None:
    rollout = make_rollout(season)
    published = await publish_rollouts(
        session_of(amber), PublishRollouts(id="p", rollouts=[rollout])
    )
    assert (published.reply_to, published.accepted, published.rejected) == ("p", 1, [])
    given = await draw(
        session_of(bold, now=NOW + timedelta(seconds=2)), RequestRollouts(id="r", count=8)
    )
    assert [(item.node, item.age_s, item.rollout) for item in given.rollouts] == [
        ("amber", 2.0, rollout)
    ]


@pytest.mark.parametrize("requested", [True, False])
async def test_log_probs_are_delivered_only_if_requested(
    season: Season, amber: Member, bold: Member, requested: bool
) -> None:
    rollout = make_rollout(season)
    completions = [msgspec.structs.replace(each, logprob=-0.5) for each in rollout.completions]
    full = msgspec.structs.replace(rollout, completions=completions)
    await publish_rollouts(session_of(amber), PublishRollouts(id="p", rollouts=[full]))
    request = RequestRollouts(id="r", count=8, logprobs=requested)
    [given] = (await draw(session_of(bold), request)).rollouts
    assert given.rollout == (full if requested else rollout)


async def test_node_is_not_given_its_own_rollouts(season: Season, amber: Member) -> None:
    session = session_of(amber)
    await publish_rollouts(session, PublishRollouts(id="p", rollouts=[make_rollout(season)]))
    assert (await draw(session, RequestRollouts(id="r", count=8))).rollouts == []


async def test_repeated_rollout_is_accepted_but_counted_once(season: Season, amber: Member) -> None:
    message = PublishRollouts(id="p", rollouts=[make_rollout(season)])
    replies = [await publish_rollouts(session_of(amber), message) for _ in range(2)]
    assert [reply.accepted for reply in replies] == [1, 1]
    await write_collected()
    assert (await Contribution.objects.aget()).published == 1


# ---- without a season


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (draw_rollouts, RequestRollouts(id="x", count=1)),
        (get_standing, RequestStanding(id="x")),
    ],
)
async def test_requests_are_refused_without_a_season(
    amber: Member, handler: Any, message: Any
) -> None:
    with pytest.raises(RefusedError) as refusal:
        await handler(session_of(amber), message)
    assert refusal.value.code == ErrorCode.SEASON_NONE


async def test_hello_updates_the_node_and_announces_what_the_server_supports(amber: Member) -> None:
    session = session_of(amber)
    session.greeted = False
    welcome = await handle_hello(session, make_hello())
    assert session.greeted
    assert (welcome.logprobs, welcome.declarations, welcome.provenance) == (True, True, True)
    node = await Node.objects.aget(name="amber")
    assert (node.last_seen, node.client_version) == (NOW, make_hello().client)


async def test_sampling_strategy_not_allowed_by_the_season_is_refused(
    season: Season, amber: Member
) -> None:
    await Season.objects.filter(pk=season.pk).aupdate(sampling=["any", "by_node"])
    session = session_of(amber)
    assert (await draw(session, RequestRollouts(id="r", count=1, prefer="by_node"))).rollouts == []
    with pytest.raises(RefusedError, match="any, by_node, not by fresh") as refusal:
        await draw_rollouts(session, RequestRollouts(id="r", count=1, prefer="fresh"))
    assert refusal.value.code == ErrorCode.RELAY_SAMPLING
