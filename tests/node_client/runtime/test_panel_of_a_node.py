"""The panel of a real node: during changes of season, and after a restart."""

import asyncio
import io
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from node_client.runtime.showing import run_with_panel
from node_client.settings.config import Settings
from swarm_protocol.messages import ReportTraining, SeasonState
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.fakes import toy_season
from tests.node_client.runtime.nodes import made_node
from tests.node_client.shell_fakes import empty_view

PATIENCE_S = 30


class Screen(io.StringIO):
    """A terminal on which a test waits for new output."""

    async def shows(self, *words: str) -> None:
        """Return as soon as one new frame contains all of these words."""
        self.seek(0)
        self.truncate()
        async with asyncio.timeout(PATIENCE_S):
            while not any(  # noqa: ASYNC110  a screen has no event for it
                all(word in frame for word in words) for frame in self.getvalue().split("╭")
            ):
                await asyncio.sleep(0.01)


@pytest.mark.filterwarnings("error::RuntimeWarning")
async def test_panel_continues_through_changes_of_season(
    settings: Settings, verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator, view, screen = Coordinator(season=toy_season()), empty_view(), Screen()
    console = Console(file=screen, width=100, height=40, force_terminal=True, color_system=None)
    async with (
        running(coordinator),
        made_node(settings, coordinator.site, verifier, view=view) as node,
    ):
        view.site = coordinator.site
        shown = asyncio.create_task(run_with_panel(node, view, console=console, refresh_s=0.001))
        await coordinator.wait_for(ReportTraining, count=3)
        for name in ("second", "third", "fourth"):
            rules = msgspec.structs.replace(toy_season(), name=name)
            await coordinator.ring(SeasonState(None, rules))
            await screen.shows(f"season    {name}", "mean of 1:")
            steps = view.steps_this_run
            await screen.shows(f"step {steps + 2:,} ", f"season    {name}")
        node.stop()
        await shown
    assert not [each for each in caplog.records if "panel" in each.getMessage()]


async def test_curve_continues_after_a_restart(settings: Settings, verifier: Verifier) -> None:
    alone = replace(settings, arm="isolated", steps=4)
    curves = []
    for _ in range(2):
        coordinator, view = Coordinator(season=toy_season()), empty_view()
        async with (
            running(coordinator),
            made_node(alone, coordinator.site, verifier, view=view) as node,
        ):
            await node.run()
        curves.append(list(view.curve))
    first, both = curves
    assert (len(first), len(both)) == (4, 8)
    assert both[:4] == first
