"""What each message does, without a socket."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from judge.models import Season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    PublishRollouts,
    ReportTraining,
    RequestRollouts,
    RequestStanding,
)
from swarm_web.gateway.handlers.hello import handle_hello
from swarm_web.gateway.handlers.standing import get_standing
from swarm_web.gateway.handlers.training import draw_rollouts, publish_rollouts, report_training
from swarm_web.gateway.process import write_collected
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, draw, session_of

# ---- rollouts and training


async def test_what_one_node_publishes_another_is_given(
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


@pytest.mark.parametrize("asked", [True, False])
async def test_log_probs_are_given_to_who_asks_for_them(
    season: Season, amber: Member, bold: Member, asked: bool
) -> None:
    rollout = make_rollout(season)
    told = [msgspec.structs.replace(each, logprob=-0.5) for each in rollout.completions]
    full = msgspec.structs.replace(rollout, completions=told)
    await publish_rollouts(session_of(amber), PublishRollouts(id="p", rollouts=[full]))
    request = RequestRollouts(id="r", count=8, logprobs=asked)
    [given] = (await draw(session_of(bold), request)).rollouts
    assert given.rollout == (full if asked else rollout)


async def test_a_welcome_tells_that_log_probs_are_known(season: Season, amber: Member) -> None:
    session = session_of(amber)
    session.greeted = False
    assert (await handle_hello(session, make_hello())).logprobs


async def test_a_node_is_never_given_its_own(season: Season, amber: Member) -> None:
    session = session_of(amber)
    await publish_rollouts(session, PublishRollouts(id="p", rollouts=[make_rollout(season)]))
    assert (await draw(session, RequestRollouts(id="r", count=8))).rollouts == []


async def test_a_repeated_rollout_is_accepted_and_counted_once(
    season: Season, amber: Member
) -> None:
    message = PublishRollouts(id="p", rollouts=[make_rollout(season)])
    replies = [await publish_rollouts(session_of(amber), message) for _ in range(2)]
    assert [reply.accepted for reply in replies] == [1, 1]
    await write_collected()
    assert (await Contribution.objects.aget()).published == 1


async def test_a_training_report_is_stored(season: Season, amber: Member) -> None:
    report = ReportTraining(
        id="t",
        step=7,
        training_reward=0.5,
        informative_share=0.25,
        local_used=28,
        external_used=0,
    )
    assert (await report_training(session_of(amber), report)).reply_to == "t"
    await write_collected()
    assert (await Contribution.objects.aget()).step == 7


# ---- without a season


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (draw_rollouts, RequestRollouts(id="x", count=1)),
        (get_standing, RequestStanding(id="x")),
    ],
)
async def test_without_a_season_there_is_nothing_to_take_part_in(
    amber: Member, handler: Any, message: Any
) -> None:
    with pytest.raises(RefusedError) as refusal:
        await handler(session_of(amber), message)
    assert refusal.value.code == ErrorCode.SEASON_NONE


async def test_a_hello_makes_the_session_greeted_and_the_node_known(amber: Member) -> None:
    session = session_of(amber)
    session.greeted = False
    await handle_hello(session, make_hello())
    assert session.greeted
    node = await Node.objects.aget(name="amber")
    assert (node.last_seen, node.client_version) == (NOW, make_hello().client)


async def test_a_way_of_drawing_that_the_season_does_not_allow_is_refused(
    season: Season, amber: Member
) -> None:
    await Season.objects.filter(pk=season.pk).aupdate(sampling=["any", "by_node"])
    session = session_of(amber)
    assert (await draw(session, RequestRollouts(id="r", count=1, prefer="by_node"))).rollouts == []
    with pytest.raises(RefusedError, match="any, by_node, not by fresh") as refusal:
        await draw_rollouts(session, RequestRollouts(id="r", count=1, prefer="fresh"))
    assert refusal.value.code == ErrorCode.RELAY_SAMPLING
