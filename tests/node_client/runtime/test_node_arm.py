"""The arm of a node: who decides it, and what the node does in it."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
import torch

from node_client.errors import CoordinatorRefusedError
from node_client.model.policy import Policy
from node_client.settings.choices import ExternalPool
from node_client.settings.config import Settings
from node_client.swarm.exchange import allowed_preference
from swarm_protocol.messages import (
    Arm,
    Hello,
    Preference,
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
from tests.node_client.runtime.nodes import count_received, made_node, running_node
from tests.node_client.shell_fakes import empty_view


async def test_node_uses_the_arm_and_name_of_the_coordinator(
    settings: Settings, verifier: Verifier
) -> None:
    async with running(Coordinator(season=toy_season())) as coordinator:
        coordinator.arm = "isolated"
        async with running_node(settings, coordinator, verifier):
            reports = await coordinator.wait_for(ReportTraining, count=2)
        assert not count_received(coordinator, RequestRollouts)
        assert not count_received(coordinator, PublishRollouts)
        # J = 0 and I = all, so an isolated node trains on as many rollouts as a node of the swarm.
        assert reports[-1].local_used == 4 * reports[-1].step
    remembered = settings.state.load()
    assert (remembered.node, remembered.url) == ("amber-quiet-heron", coordinator.site.base)


async def test_isolated_node_publishes_if_the_season_allows_it(
    settings: Settings, verifier: Verifier
) -> None:
    season = msgspec.structs.replace(toy_season(), isolated_publish=True)
    async with running(Coordinator(season=season)) as coordinator:
        coordinator.arm = "isolated"
        async with running_node(settings, coordinator, verifier):
            assert await coordinator.wait_for(PublishRollouts)


@pytest.mark.parametrize(("pool", "prefer"), [("uniform", "any"), ("by-node", "by_node")])
async def test_node_requests_the_sampling_strategy_that_its_owner_chose(
    settings: Settings, verifier: Verifier, pool: ExternalPool, prefer: str
) -> None:
    chosen = replace(settings, training=replace(settings.training, external_pool=pool))
    season = msgspec.structs.replace(toy_season(), sampling=["any", prefer])
    coordinator = Coordinator(season=season)
    async with running(coordinator), running_node(chosen, coordinator, verifier):
        [request, *_] = await coordinator.wait_for(RequestRollouts)
    assert request.prefer == prefer


@pytest.mark.parametrize(
    ("preferred", "allowed", "prefer"),
    [
        ("fresh", ["any", "informative"], "any"),
        ("informative", ["any", "fresh"], "any"),
        # Older coordinators.
        ("fresh", [], "any"),
        ("informative", [], "informative"),
        # A newer coordinator.
        ("fresh", ["any", "by_moon", "fresh"], "fresh"),
    ],
)
def test_sampling_strategy_is_used_only_if_the_season_allows_it(
    preferred: Preference, allowed: list[str], prefer: str
) -> None:
    season = msgspec.structs.replace(toy_season(), sampling=allowed)
    assert allowed_preference(preferred, season) == prefer


async def test_disallowed_sampling_strategy_is_replaced_and_reported_once(
    settings: Settings, verifier: Verifier
) -> None:
    chosen = replace(settings, training=replace(settings.training, external_pool="fresh"))
    season = msgspec.structs.replace(toy_season(), sampling=["any", "informative"])
    coordinator, view = Coordinator(season=season), empty_view()
    async with running(coordinator), running_node(chosen, coordinator, verifier, view=view):
        [request, *_] = await coordinator.wait_for(RequestRollouts)
        await coordinator.close_connections()
        await coordinator.wait_for(Hello, count=2)
        await coordinator.wait_for(RequestRollouts, count=3)
    assert request.prefer == "any"
    [_] = [notice for notice in view.notices if "does not allow" in notice.message]


def weights_of(policy: Policy) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in policy.trainable()]


async def test_base_node_answers_with_its_untrained_model_and_does_nothing_else(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    async with running(coordinator):
        async with made_node(replace(settings, steps=2), coordinator.site, verifier) as node:
            await node.run()
        checkpoints = sorted(settings.state.checkpoints.iterdir())
        assert checkpoints
        coordinator.received.clear()
        policy, coordinator.round = toy_policy(), open_round()
        untouched = weights_of(policy)
        base = replace(settings, arm="base")
        async with running_node(base, coordinator, verifier, policy=policy):
            await coordinator.wait_for(SubmitAnswers)
            coordinator.round = open_round(2)
            await coordinator.ring(RoundState(None, coordinator.round, now()))
            await coordinator.wait_for(SubmitAnswers, count=2)
    assert all(map(torch.equal, weights_of(policy), untouched))
    assert sorted(settings.state.checkpoints.iterdir()) == checkpoints
    judged = {Hello, RequestRound, RequestQuestions, SubmitAnswers, RequestStanding}
    assert {type(message) for message in coordinator.received} <= judged


async def test_base_node_shows_no_score_of_an_ended_season(
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


@pytest.mark.parametrize(("wish", "assigned"), [("base", "swarm"), ("isolated", "base")])
async def test_node_refuses_a_change_between_the_base_arm_and_another(
    settings: Settings, verifier: Verifier, wish: Arm, assigned: Arm
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.arm = assigned
    async with (
        running(coordinator),
        made_node(replace(settings, arm=wish), coordinator.site, verifier) as node,
    ):
        with pytest.raises(CoordinatorRefusedError, match=assigned) as refusal:
            async with asyncio.timeout(20):
                await node.run()
    assert f"--arm {assigned}" in refusal.value.fix
    assert not count_received(coordinator, RequestQuestions)


async def test_node_requests_its_arm_again_when_a_season_with_coin_flips_begins(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    coordinator.arm = "swarm"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
        coordinator.season = msgspec.structs.replace(toy_season(), name="next", assignment="coin")
        coordinator.arm = "isolated"
        coordinator.silent.add(Hello)
        await coordinator.ring(SeasonState(None, coordinator.season))
        await coordinator.wait_for(Hello, count=2)
        # Until it is welcomed it uses no rollouts of others, as it may become an isolated node.
        assert view.arm == "isolated"
        coordinator.silent.clear()
        await coordinator.stop()
        await coordinator.start()
        # A step that had already started may still send one request.
        reported = count_received(coordinator, ReportTraining)
        await coordinator.wait_for(ReportTraining, count=reported + 2)
        asked = count_received(coordinator, RequestRollouts)
        await coordinator.wait_for(ReportTraining, count=reported + 4)
        assert count_received(coordinator, RequestRollouts) == asked
        assert view.arm == "isolated"


async def test_coin_flip_may_return_a_node_to_the_swarm(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    coordinator.arm = "isolated"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
        coordinator.season = msgspec.structs.replace(toy_season(), name="next", assignment="coin")
        coordinator.arm = "swarm"
        await coordinator.ring(SeasonState(None, coordinator.season))
        await coordinator.wait_for(RequestRollouts)
        assert (view.arm, view.season) == ("swarm", coordinator.season)


async def test_node_returns_to_its_owners_arm_after_a_season_with_coin_flips(
    settings: Settings, verifier: Verifier
) -> None:
    season = msgspec.structs.replace(toy_season(), assignment="coin")
    coordinator, view = Coordinator(season=season), empty_view()
    coordinator.arm = "isolated"
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
        rules = msgspec.structs.replace(toy_season(), name="next")
        await coordinator.ring(SeasonState(None, rules))
        await coordinator.wait_for(RequestRollouts)
        assert count_received(coordinator, Hello) == 1


async def test_node_stays_connected_if_the_next_season_has_no_coin_flips(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator, view = Coordinator(season=toy_season()), empty_view()
    async with running(coordinator), running_node(settings, coordinator, verifier, view=view):
        await coordinator.wait_for(ReportTraining)
        rules = msgspec.structs.replace(toy_season(local=3, external=3), name="next")
        await coordinator.ring(SeasonState(None, rules))
        await coordinator.wait_for(ReportTraining, where=lambda report: report.local_used % 6 == 0)
        assert count_received(coordinator, Hello) == 1
