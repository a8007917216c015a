"""The live panel of a running node: its errors end neither panel, training nor shell."""

import asyncio
import errno
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.console import Console

from node_client.display.view import NodeView
from node_client.runtime.showing import run_with_panel, show_panel
from swarm_protocol.messages import RoundInfo
from tests.node_client.panel_views import full_view

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"


class Screen(io.StringIO):
    """Records what a terminal shows. If it is gone, writing fails as after a lost login."""

    is_gone = False

    def write(self, text: str) -> int:
        if self.is_gone:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)


def terminal(screen: Screen) -> Console:
    return Console(file=screen, width=80, force_terminal=True, color_system=None)


def undrawable(closes_at: str = "soon") -> RoundInfo:
    """Return a round whose end is not a time, so that it cannot be counted down."""
    return RoundInfo(7, "open", closes_at, closes_at, 64)


@asynccontextmanager
async def shown(view: NodeView, screen: Screen) -> AsyncIterator[asyncio.Task[None]]:
    """Draw a view repeatedly, without pauses, while the block runs."""
    showing = asyncio.create_task(show_panel(view, console=terminal(screen), refresh_s=0))
    try:
        yield showing
    finally:
        showing.cancel()
        await asyncio.wait([showing])


async def draw_frames() -> None:
    """Let the event loop draw several frames."""
    for _ in range(5):
        await asyncio.sleep(0)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith("node_client")]


async def test_undrawable_state_is_logged_once_and_the_next_state_is_drawn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    view, screen = full_view(), Screen()
    view.round = undrawable()
    async with shown(view, screen):
        await draw_frames()
        view.round = None
        await draw_frames()
        assert "amber-quiet-heron" in screen.getvalue()
    [warning] = warnings_in(caplog)
    assert "Invalid isoformat string: 'soon'" in warning
    assert "Training continues" in warning


async def test_every_distinct_drawing_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    view = full_view()
    async with shown(view, Screen()):
        for closes_at in ("soon", "later", "soon"):
            view.round = undrawable(closes_at)
            await draw_frames()
    first, second = warnings_in(caplog)
    assert "'soon'" in first
    assert "'later'" in second


async def test_terminal_is_restored_if_the_panel_ends_in_an_undrawable_state() -> None:
    view, screen = full_view(), Screen()
    async with shown(view, screen) as showing:
        await draw_frames()
        view.round = undrawable()
        await draw_frames()
    assert showing.cancelled()
    assert screen.getvalue().rfind(SHOW_CURSOR) > screen.getvalue().rfind(HIDE_CURSOR) >= 0


class PatientNode:
    """A node that trains while a few frames are drawn."""

    has_finished = False

    async def run(self) -> None:
        await draw_frames()
        self.has_finished = True

    def stop(self) -> None:
        raise NotImplementedError


async def test_lost_terminal_ends_the_panel_but_not_the_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    screen, node = Screen(), PatientNode()
    screen.is_gone = True
    await run_with_panel(node, full_view(), console=terminal(screen))
    assert node.has_finished
    [warning] = warnings_in(caplog)
    assert "Input/output error" in warning
    assert "Training continues" in warning


class BrokenScreen(Screen):
    """A screen whose first frame fails with an error other than OSError."""

    is_broken = True

    def write(self, text: str) -> int:
        if self.is_broken and "amber-quiet-heron" in text:
            self.is_broken = False
            raise ValueError("no such colour")
        return super().write(text)


class NodeWithClosedScreen:
    """A node that trains until its screen is closed, and ends before the next frame is drawn."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def run(self) -> None:
        await draw_frames()
        self._screen.close()  # from now on, writing raises ValueError

    def stop(self) -> None:
        raise NotImplementedError


async def test_node_ends_although_its_last_frame_cannot_be_drawn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    screen = Screen()
    async with asyncio.timeout(5):
        await run_with_panel(
            NodeWithClosedScreen(screen), full_view(), console=terminal(screen), restart_s=0
        )
    [warning] = warnings_in(caplog)
    assert "closed file" in warning


class NodeUntilShown:
    """A node that trains until its panel is on the screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def run(self) -> None:
        async with asyncio.timeout(10):
            while "amber-quiet-heron" not in self._screen.getvalue():  # noqa: ASYNC110
                await asyncio.sleep(0)

    def stop(self) -> None:
        raise NotImplementedError


async def test_failed_panel_is_restarted_and_the_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    screen = BrokenScreen()
    console = terminal(screen)
    await run_with_panel(NodeUntilShown(screen), full_view(), console=console, restart_s=0)
    [warning] = warnings_in(caplog)
    assert "no such colour" in warning
    assert screen.getvalue().rfind(SHOW_CURSOR) > screen.getvalue().rfind(HIDE_CURSOR) >= 0
