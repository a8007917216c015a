"""A node that runs against the coordinator of the tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from node_client.display.view import NodeView
from node_client.model.policy import Policy
from node_client.runtime.node import SwarmNode
from node_client.runtime.pausing import Pauses
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.site import Site
from swarm_protocol.messages import NodeMessage
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator
from tests.node_client.fakes import writing_policy
from tests.node_client.shell_fakes import empty_view, no_backoff

# With the defaults, a test that waits for a second report or for the last one takes a second.
REPORT_INTERVAL_S = 0.01
# So does a test that waits for a pause.
POLL_S = 0.01


@asynccontextmanager
async def made_node(
    settings: Settings,
    site: Site,
    verifier: Verifier,
    *,
    view: NodeView | None = None,
    policy: Policy | None = None,
) -> AsyncIterator[SwarmNode]:
    settings.state.path.mkdir(exist_ok=True)
    view = view or empty_view()
    view.arm = settings.arm
    async with ModelWorker() as worker:
        equipment = Equipment(
            policy=policy or writing_policy(),
            verifier=verifier,
            worker=worker,
            view=view,
        )
        yield SwarmNode(
            settings,
            site=site,
            equipment=equipment,
            backoff=no_backoff,
            uniform=lambda: 0.0,
            report_interval_s=REPORT_INTERVAL_S,
            pauses=Pauses(settings, view=view, poll_s=POLL_S),
        )


@asynccontextmanager
async def running_node(
    settings: Settings,
    coordinator: Coordinator,
    verifier: Verifier,
    *,
    view: NodeView | None = None,
    policy: Policy | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """Run a node against the coordinator; leaving the block stops it cleanly."""
    site = coordinator.site
    async with made_node(settings, site, verifier, view=view, policy=policy) as node:
        task = asyncio.create_task(node.run())
        try:
            yield task
        finally:
            node.stop()
            await asyncio.wait([task])
        if task.exception() is not None:
            await task


def count_received(coordinator: Coordinator, kind: type[NodeMessage]) -> int:
    return sum(isinstance(message, kind) for message in coordinator.received)
