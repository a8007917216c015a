"""A node that its service may update ends for a newer client, after the round."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from node_client.commands.problems import UPGRADE_DUE, exit_code_of
from node_client.errors import CoordinatorRefusedError, UpgradeDueError
from node_client.settings.config import Settings
from node_client.storage.checkpoint import newest_first
from node_client.storage.upgrades import UpgradeRequest, read_upgrade, write_upgrade
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Hello, ReportTraining
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, open_round, running
from tests.node_client.fakes import toy_season
from tests.node_client.runtime.nodes import running_node


async def test_node_answers_the_round_saves_and_ends_for_a_newer_client(
    settings: Settings, verifier: Verifier
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.upgrade = "9.0.0"
    coordinator.round = open_round(questions=40)
    chosen = replace(settings, auto_update=True)
    with pytest.raises(UpgradeDueError) as ended:
        async with running(coordinator), running_node(chosen, coordinator, verifier) as task:
            await task
    assert exit_code_of(ended.value) == UPGRADE_DUE
    assert len(coordinator.answers) == 40
    assert read_upgrade(settings.state) == UpgradeRequest("9.0.0")
    assert newest_first(settings.state.checkpoints)


@pytest.mark.parametrize("auto_update", [True, False])
async def test_node_continues_if_it_may_not_or_could_not_be_updated(
    settings: Settings, verifier: Verifier, auto_update: bool
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.upgrade = "9.0.0"
    if auto_update:
        settings.state.path.mkdir(exist_ok=True)
        write_upgrade(
            settings.state, UpgradeRequest("9.0.0", tried_at=datetime.now(UTC), problem="No.")
        )
    chosen = replace(settings, auto_update=auto_update)
    async with running(coordinator), running_node(chosen, coordinator, verifier):
        await coordinator.wait_for(ReportTraining, count=3)


@pytest.mark.parametrize(
    ("auto_update", "ending"), [(True, UpgradeDueError), (False, CoordinatorRefusedError)]
)
async def test_outdated_client_ends_for_an_upgrade_only_if_updates_are_enabled(
    settings: Settings, verifier: Verifier, auto_update: bool, ending: type[Exception]
) -> None:
    coordinator = Coordinator(season=toy_season())
    coordinator.refusals[Hello] = ErrorCode.CLIENT_TOO_OLD
    chosen = replace(settings, auto_update=auto_update)
    with pytest.raises(ending):
        async with running(coordinator), running_node(chosen, coordinator, verifier) as task:
            await task
