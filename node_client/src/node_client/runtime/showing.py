"""The live panel beside a running node: no error of its own ends it, or the node."""

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from traceback import extract_tb
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import SegmentLines

from node_client.display.panel import render
from node_client.display.view import View

REFRESH_S = 0.5
RESTART_S = 1.0

log = logging.getLogger(__name__)


class Runnable(Protocol):
    """A node, with or without a swarm."""

    async def run(self) -> None:
        """Train until stopped or done."""

    def stop(self) -> None:
        """Ask `run` to finish its step, save and return."""


async def run_with_panel(
    node: Runnable,
    view: View,
    *,
    console: Console,
    refresh_s: float = REFRESH_S,
    restart_s: float = RESTART_S,
) -> None:
    """Run a node and show its panel meanwhile. The node goes on when the panel ends."""
    showing = asyncio.create_task(
        keep_showing(view, console=console, refresh_s=refresh_s, restart_s=restart_s)
    )
    try:
        await node.run()
    finally:
        showing.cancel()
        await asyncio.wait([showing])


async def keep_showing(view: View, *, console: Console, refresh_s: float, restart_s: float) -> None:
    """Show the panel until cancelled, and begin again after an error; each one is logged once.

    A terminal that takes no output any more ends it.
    """
    told: set[str] = set()
    while True:
        try:
            await show_panel(view, console=console, refresh_s=refresh_s)
        except OSError as problem:
            log.warning(
                "the panel has ended: %r. Training goes on; --plain prints lines instead.", problem
            )
            return
        except Exception as problem:  # noqa: BLE001 - the edge of a task that nobody awaits
            if repr(problem) not in told:
                told.add(repr(problem))
                _tell_undrawable(problem)
        await asyncio.sleep(restart_s)


async def show_panel(view: View, *, console: Console, refresh_s: float) -> None:
    """Keep the panel in the terminal up to date until cancelled.

    A view that cannot be drawn leaves the last picture there; each distinct error is logged once.
    Raises OSError when the terminal takes no output.
    """
    told: set[str] = set()

    def redraw() -> None:
        try:
            picture = draw(view, console=console)
        except Exception as problem:  # noqa: BLE001 - the edge of a task that nobody awaits
            if repr(problem) not in told:
                told.add(repr(problem))
                _tell_undrawable(problem)
            return
        live.update(picture, refresh=True)

    with Live(console=console, auto_refresh=False) as live:
        try:
            while True:
                redraw()
                await asyncio.sleep(refresh_s)
        finally:
            redraw()


def draw(view: View, *, console: Console) -> RenderableType:
    """Return the panel as lines that fit the console now."""
    # A line is left for the cursor, which goes there at the end: the first line stays in sight.
    height = console.height - 1
    panel = render(view, now=datetime.now(UTC), clock=monotonic(), height=height)
    # Room for what terminals echo of Ctrl-C: after the last column it would begin a new line.
    options = console.options.update(width=console.width - len("^C") - 1)
    # As lines, so that any error is raised here: Live renders again what it shows with each log
    # line and when it stops.
    return SegmentLines(console.render_lines(panel, options), new_lines=True)


def _tell_undrawable(problem: Exception) -> None:
    place = extract_tb(problem.__traceback__)[-1]
    log.warning(
        "the panel cannot be drawn: %r (%s, line %s). Training goes on; --plain prints lines.",
        *(problem, Path(place.filename).name, place.lineno),
    )
