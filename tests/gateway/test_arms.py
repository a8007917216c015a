"""Arm of a connected node: chosen by its owner or assigned by the season's coin flip."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import CoinBlock, Enrolment, Season
from judge.services.seasons import start_season
from swarm_protocol.messages import (
    NodeMessage,
    Refused,
    RequestQuestions,
    RequestRollouts,
    RolloutsSampled,
    SeasonState,
    Welcome,
)
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.nodes.models import Node
from tests.factories import make_hello, make_node, make_round, make_season
from tests.gateway.conftest import Member
from tests.gateway.refusals import assert_refused
from tests.sockets import NodeSocket, node_socket

COIN = Season.Assignment.COIN
SAMPLE = RequestRollouts(id="sample", count=1)
# The owner chooses one arm and the coin assigns the other.
COIN_AGAINST_WISH = pytest.mark.parametrize(
    ("wish", "drawn"), [("swarm", "isolated"), ("isolated", "swarm")]
)


def make_drawn(season: Season, arm: str) -> Member:
    """Create a node to which the coin will assign `arm`; it is not enrolled yet."""
    node, token = make_node()
    CoinBlock.objects.create(season=season, model=node.model, arms=[arm] * 4, size=4)
    return Member(node, token)


async def hello(socket: NodeSocket, *, arm: Any) -> Welcome:
    welcome = await socket.ask(make_hello(arm=arm))
    assert isinstance(welcome, Welcome)
    return welcome


# ---- in the welcome


@pytest.mark.parametrize("wish", ["swarm", "isolated", "base"])
async def test_welcome_has_the_owners_arm_in_a_season_without_a_coin(
    gateway: str, season: Season, amber: Member, wish: str
) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        assert (await hello(socket, arm=wish)).arm == wish


@COIN_AGAINST_WISH
async def test_welcome_has_the_coins_arm_in_a_season_with_a_coin(
    gateway: str, wish: str, drawn: str
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, drawn)
    async with node_socket(gateway, member.token, greet=False) as socket:
        welcome = await hello(socket, arm=wish)
    assert welcome.arm == drawn
    assert welcome.season is not None
    assert welcome.season.assignment == "coin"


async def test_coins_arm_is_stored_in_the_enrolment_and_the_node(gateway: str) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    async with node_socket(gateway, member.token, greet=False) as socket:
        await hello(socket, arm="swarm")
    enrolment = await Enrolment.objects.aget(node=member.node)
    assert (enrolment.arm, enrolment.assignment) == ("isolated", COIN)
    assert (await Node.objects.aget(pk=member.node.pk)).arm == "isolated"


async def test_coins_arm_is_unchanged_when_a_node_reconnects_with_another_wish(
    gateway: str,
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    for wish in ("swarm", "isolated", "swarm"):
        async with node_socket(gateway, member.token, greet=False) as socket:
            assert (await hello(socket, arm=wish)).arm == "isolated"


async def test_coin_does_not_change_the_arm_of_a_base_node(gateway: str, amber: Member) -> None:
    await sync_to_async(make_season)(assignment=COIN)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        assert (await hello(socket, arm="base")).arm == "base"


# ---- in requests for rollouts


@COIN_AGAINST_WISH
async def test_coins_arm_decides_whether_a_node_gets_external_rollouts(
    gateway: str, wish: str, drawn: str
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, drawn)
    async with node_socket(gateway, member.token, greet=False) as socket:
        await hello(socket, arm=wish)
        if drawn == "isolated":
            await assert_refused(socket, SAMPLE, "relay.isolated", reply_to="sample")
        else:
            assert isinstance(await socket.ask(SAMPLE), RolloutsSampled)


@pytest.mark.parametrize("assignment", list(Season.Assignment))
async def test_base_node_is_refused_external_rollouts(
    gateway: str, amber: Member, assignment: str
) -> None:
    await sync_to_async(make_season)(assignment=assignment)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await hello(socket, arm="base")
        await assert_refused(socket, SAMPLE, "relay.isolated", reply_to="sample")


# ---- in a season that starts after the hello


def draft(**fields: Any) -> Season:
    """Create a season that has not started."""
    tasks = msgspec.to_builtins(list(STARTER_TASKS))
    return Season.objects.create(name="The next one", tasks=tasks, **fields)


async def begin(socket: NodeSocket, season: Season) -> None:
    """Start a season and wait until the connected node receives its doorbell."""
    await sync_to_async(start_season)(season, now=timezone.now())
    while not isinstance(received := await socket.hear(), SeasonState) or received.season is None:
        pass


def take(season: Season) -> RequestQuestions:
    return RequestQuestions(id="take", round=make_round(season).number)


@pytest.mark.parametrize("first", [lambda _: SAMPLE, take], ids=["rollouts", "questions"])
async def test_coin_of_a_later_season_is_flipped_at_the_first_request(
    gateway: str, first: Callable[[Season], NodeMessage]
) -> None:
    later = await sync_to_async(draft)(assignment=COIN)
    member = await sync_to_async(make_drawn)(later, "isolated")
    async with node_socket(gateway, member.token) as socket:
        await begin(socket, later)
        await socket.ask(await sync_to_async(first)(later))
    enrolment = await Enrolment.objects.aget(node=member.node, season=later)
    assert (enrolment.arm, enrolment.assignment) == ("isolated", COIN)
    assert (await Node.objects.aget(pk=member.node.pk)).arm == "isolated"


async def test_node_isolated_by_a_later_coin_gets_no_more_rollouts(
    gateway: str, season: Season
) -> None:
    later = await sync_to_async(draft)(assignment=COIN)
    member = await sync_to_async(make_drawn)(later, "isolated")
    async with node_socket(gateway, member.token) as socket:
        assert isinstance(await socket.ask(SAMPLE), RolloutsSampled)
        await begin(socket, later)
        await assert_refused(socket, SAMPLE, "relay.isolated", reply_to="sample")


async def test_node_isolated_by_a_coin_has_its_owners_arm_in_the_next_season(
    gateway: str,
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    async with node_socket(gateway, member.token) as socket:
        assert isinstance(await socket.ask(SAMPLE), Refused)
        await begin(socket, await sync_to_async(draft)())
        assert isinstance(await socket.ask(SAMPLE), RolloutsSampled)
    assert (await Node.objects.aget(pk=member.node.pk)).arm == "swarm"
