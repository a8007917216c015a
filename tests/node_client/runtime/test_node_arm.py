"""Which arm a node is in, who says so, and what it does in it."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
import torch

from node_client.errors import CoordinatorRefusedError
from node_client.model.policy import Policy
from node_client.settings.choices import ExternalPool
from node_client.settings.config import Settings
from swarm_protocol.messages import (
    Arm,
    Hello,
    PublishRollouts,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    RoundState,
    SeasonState,
    SubmitAnswers,
)
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, now, open_round, running
from tests.node_client.fakes import toy_policy, toy_season
from tests.node_client.runtime.nodes import heard_so_far, made_node, running_node
from tests.node_client.shell_fakes import empty_view


async def test_the_coordinators_arm_and_name_are_the_nodes(
    settings: Settings, verifier: Verifier
) -> None:
    async with running(Coordinator(season=toy_season())) as coordinator:
        coordinator.arm = "isolated"
        async with running_node(settings, coordinator, verifier):
            reports = await coordinator.heard(ReportTraining, count=2)
        assert not heard_so_far(coordinator, RequestRollouts)
        assert not heard_so_far(coordinator, PublishRollouts)
        # J = 0 and I = all, so an isolated node trains on as much as one of the swarm.
        assert reports[-1].local_used == 4 * reports[-1].step
    remembered = settings.state.load()
    assert (remembered.node, remembered.url) == ("amber-quiet-heron", coordinator.site.base)


async def test_an_isolated_node_gives_where_the_season_lets_it(
    settings: Settings, verifier: Verifier
) -> None:
    season = msgspec.structs.replace(toy_season(), isolated_publish=True)
    async with running(Coordinator(season=season)) as coordinator:
        coordinator.arm = "isolated"
        async with running_node(settings, coordinator, verifier):
            assert await coordinator.heard(PublishRollouts)


@pytest.mark.parametrize(
    ("pool", "prefer"),
    [
        ("informative", "informative"),
        ("uniform", "any"),
        ("by-node", "by_node"),
        ("by-task", "by_task"),
        ("fresh", "fresh"),
    ],
)
async def test_a_node_prefers_what_its_owner_chose(
    settings: Settings, verifier: Verifier, pool: ExternalPool, prefer: str
) -> None:
    chosen = replace(settings, training=replace(settings.training, external_pool=pool))
    season = msgspec.structs.replace(toy_season(), sampling=["any", prefer])
    coordinator = Coordinator(season=season)
    async with running(coordinator), running_node(chosen, coordinator, verifier):
        [request, *_] = await coordinator.heard(RequestRollouts)
    assert request.prefer == prefer


@pytest.mark.parametrize(
    ("pool", "allowed", "prefer"),
    [
        ("fresh", ["any", "informative"], "any"),
        ("informative", ["any", "fresh"], "any"),
        # Of older coordinators.
        ("fresh", [], "any"),
        ("informative", [], "informative"),
        # Of a newer one.
        ("fresh", ["any", "by_moon", "fresh"], "fresh"),
    ],
)
async def test_a_node_asks_for_what_the_season_allows_and_says_once_if_it_is_not_the_owners_choice(
    settings: Settings, verifier: Verifier, pool: ExternalPool, allowed: list[str], prefer: str
) -> None:
    chosen = replace(settings, training=replace(settings.training, external_pool=pool))
    season = msgspec.structs.replace(toy_season(), sampling=allowed)
    coordinator, view = Coordinator(season=season), empty_view()
    async with running(coordinator), running_node(chosen, coordinator, verifier, view=view):
        [request, *_] = await coordinator.heard(RequestRollouts)
        await coordinator.hang_up()
        await coordinator.heard(Hello, count=2)
        await coordinator.heard(RequestRollouts, count=3)
    assert request.prefer == prefer
    said = [notice for notice in view.notices if "does not allow" in notice.message]
    assert len(said) == (prefer == "any")


def weights_of(policy: Policy) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in policy.trainable()]


async def test_a_base_node_answers_with_its_model_untouched_and_does_nothing_else(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    async with running(coordinator):
        async with made_node(replace(settings, steps=2), coordinator.site, verifier) as node:
            await node.run()
        checkpoints = sorted(settings.state.checkpoints.iterdir())
        assert checkpoints
        coordinator.said.clear()
        policy, coordinator.round = toy_policy(), open_round()
        untouched = weights_of(policy)
        base = replace(settings, arm="base")
        async with running_node(base, coordinator, verifier, policy=policy):
            await coordinator.heard(SubmitAnswers)
            coordinator.round = open_round(2)
            await coordinator.ring(RoundState(None, coordinator.round, now()))
            await coordinator.heard(SubmitAnswers, count=2)
    assert all(map(torch.equal, weights_of(policy), untouched))
    assert sorted(settings.state.checkpoints.iterdir()) == checkpoints
    judged = {Hello, RequestRound, RequestQuestions, SubmitAnswers, RequestStanding}
    assert {type(message) for message in coordinator.said} <= judged


async def test_a_base_node_shows_no_score_of_a_season_that_has_ended(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    base = replace(settings, arm="base")
    async with (
        running(coordinator),
        running_node(base, coordinator, verifier, view=view) as task,
    ):
        while view.standing is None:
            await asyncio.wait([task], timeout=0.01)
        await coordinator.ring(SeasonState(None, None))
        while view.season is not None:
            await asyncio.wait([task], timeout=0.01)
        assert view.standing is None


@pytest.mark.parametrize(("wish", "told"), [("base", "swarm"), ("isolated", "base")])
async def test_a_node_never_answers_as_base_what_it_trained_nor_the_other_way_round(
    settings: Settings, verifier: Verifier, wish: Arm, told: Arm
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.arm = told
    async with (
        running(coordinator),
        made_node(replace(settings, arm=wish), coordinator.site, verifier) as node,
    ):
        with pytest.raises(CoordinatorRefusedError, match=told) as refusal:
            async with asyncio.timeout(20):
                await node.run()
    assert f"--arm {told}" in refusal.value.fix
    assert not heard_so_far(coordinator, RequestQuestions)


async def test_a_node_asks_again_for_its_arm_when_a_season_that_flips_coins_begins(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    coordinator.arm = "swarm"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.heard(ReportTraining)
        coordinator.season = msgspec.structs.replace(toy_season(), name="next", assignment="coin")
        coordinator.arm = "isolated"
        coordinator.silent.add(Hello)
        await coordinator.ring(SeasonState(None, coordinator.season))
        await coordinator.heard(Hello, count=2)
        # Until it is welcomed it takes no rollouts of others, which could spoil an isolated node.
        assert view.arm == "isolated"
        coordinator.silent.clear()
        await coordinator.stop()
        await coordinator.start()
        # The step that had begun before may still ask once.
        reported = heard_so_far(coordinator, ReportTraining)
        await coordinator.heard(ReportTraining, count=reported + 2)
        asked = heard_so_far(coordinator, RequestRollouts)
        await coordinator.heard(ReportTraining, count=reported + 4)
        assert heard_so_far(coordinator, RequestRollouts) == asked
        assert view.arm == "isolated"


async def test_the_coin_may_send_a_node_back_to_the_swarm(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    coordinator.arm = "isolated"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.heard(ReportTraining)
        coordinator.season = msgspec.structs.replace(toy_season(), name="next", assignment="coin")
        coordinator.arm = "swarm"
        await coordinator.ring(SeasonState(None, coordinator.season))
        await coordinator.heard(RequestRollouts)
        assert (view.arm, view.season) == ("swarm", coordinator.season)


async def test_after_a_season_with_coins_a_node_is_again_what_its_owner_chose(
    settings: Settings, verifier: Verifier
) -> None:
    season = msgspec.structs.replace(toy_season(), assignment="coin")
    coordinator, view = Coordinator(season=season), empty_view()
    coordinator.arm = "isolated"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.heard(ReportTraining)
        rules = msgspec.structs.replace(toy_season(), name="next")
        await coordinator.ring(SeasonState(None, rules))
        await coordinator.heard(RequestRollouts)
        assert heard_so_far(coordinator, Hello) == 1


async def test_a_node_stays_connected_when_its_owner_chooses_the_arm_in_the_next_season(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.heard(ReportTraining)
        rules = msgspec.structs.replace(toy_season(local=3, external=3), name="next")
        await coordinator.ring(SeasonState(None, rules))
        await coordinator.heard(ReportTraining, where=lambda report: report.local_used % 6 == 0)
        assert heard_so_far(coordinator, Hello) == 1
