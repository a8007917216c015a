"""Which arm a connected node is in: its owner's wish, or what the season's coin says."""

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
# A node whose owner wishes the one, and for whom the coin will say the other.
AGAINST_THE_WISH = pytest.mark.parametrize(
    ("wish", "drawn"), [("swarm", "isolated"), ("isolated", "swarm")]
)


def make_drawn(season: Season, arm: str) -> Member:
    """Make a node for which the coin will say `arm`; it is not enrolled yet."""
    node, token = make_node()
    CoinBlock.objects.create(season=season, model=node.model, arms=[arm] * 4, size=4)
    return Member(node, token)


async def hello(socket: NodeSocket, *, arm: Any) -> Welcome:
    welcome = await socket.ask(make_hello(arm=arm))
    assert isinstance(welcome, Welcome)
    return welcome


# ---- in the welcome


@pytest.mark.parametrize("wish", ["swarm", "isolated", "base"])
async def test_where_owners_choose_the_welcome_has_the_arm_that_was_wished(
    gateway: str, season: Season, amber: Member, wish: str
) -> None:
    async with node_socket(gateway, amber.token, greet=False) as socket:
        assert (await hello(socket, arm=wish)).arm == wish


@AGAINST_THE_WISH
async def test_where_a_coin_decides_the_welcome_has_the_coins_arm(
    gateway: str, wish: str, drawn: str
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, drawn)
    async with node_socket(gateway, member.token, greet=False) as socket:
        welcome = await hello(socket, arm=wish)
    assert welcome.arm == drawn
    assert welcome.season is not None
    assert welcome.season.assignment == "coin"


async def test_the_coins_arm_is_kept_on_record_and_shown_with_the_node(gateway: str) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    async with node_socket(gateway, member.token, greet=False) as socket:
        await hello(socket, arm="swarm")
    enrolment = await Enrolment.objects.aget(node=member.node)
    assert (enrolment.arm, enrolment.assignment) == ("isolated", COIN)
    assert (await Node.objects.aget(pk=member.node.pk)).arm == "isolated"


async def test_a_node_that_connects_again_keeps_its_arm_whatever_it_wishes_then(
    gateway: str,
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    for wish in ("swarm", "isolated", "swarm"):
        async with node_socket(gateway, member.token, greet=False) as socket:
            assert (await hello(socket, arm=wish)).arm == "isolated"


async def test_the_coin_leaves_untrained_nodes_alone(gateway: str, amber: Member) -> None:
    await sync_to_async(make_season)(assignment=COIN)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        assert (await hello(socket, arm="base")).arm == "base"


# ---- in what a node is given


@AGAINST_THE_WISH
async def test_only_the_coins_arm_decides_whether_a_node_is_given_rollouts_of_others(
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
async def test_an_untrained_node_is_given_no_rollouts_of_others(
    gateway: str, amber: Member, assignment: str
) -> None:
    await sync_to_async(make_season)(assignment=assignment)
    async with node_socket(gateway, amber.token, greet=False) as socket:
        await hello(socket, arm="base")
        await assert_refused(socket, SAMPLE, "relay.isolated", reply_to="sample")


# ---- in a season that began after the hello


def draft(**fields: Any) -> Season:
    """Make a season that has not begun."""
    tasks = msgspec.to_builtins(list(STARTER_TASKS))
    return Season.objects.create(name="The next one", tasks=tasks, **fields)


async def begin(socket: NodeSocket, season: Season) -> None:
    """Start a season while a node is connected, and let the node hear of it."""
    await sync_to_async(start_season)(season, now=timezone.now())
    while not isinstance(heard := await socket.hear(), SeasonState) or heard.season is None:
        pass


def take(season: Season) -> RequestQuestions:
    return RequestQuestions(id="take", round=make_round(season).number)


@pytest.mark.parametrize("first", [lambda _: SAMPLE, take], ids=["rollouts", "questions"])
async def test_a_coin_of_a_season_that_begins_later_is_flipped_at_the_first_request(
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


async def test_a_node_that_was_given_rollouts_gets_none_once_a_coin_has_isolated_it(
    gateway: str, season: Season
) -> None:
    later = await sync_to_async(draft)(assignment=COIN)
    member = await sync_to_async(make_drawn)(later, "isolated")
    async with node_socket(gateway, member.token) as socket:
        assert isinstance(await socket.ask(SAMPLE), RolloutsSampled)
        await begin(socket, later)
        await assert_refused(socket, SAMPLE, "relay.isolated", reply_to="sample")


async def test_a_node_isolated_by_a_coin_is_what_its_owner_wished_in_the_next_season(
    gateway: str,
) -> None:
    season = await sync_to_async(make_season)(assignment=COIN)
    member = await sync_to_async(make_drawn)(season, "isolated")
    async with node_socket(gateway, member.token) as socket:
        assert isinstance(await socket.ask(SAMPLE), Refused)
        await begin(socket, await sync_to_async(draft)())
        assert isinstance(await socket.ask(SAMPLE), RolloutsSampled)
    assert (await Node.objects.aget(pk=member.node.pk)).arm == "swarm"
