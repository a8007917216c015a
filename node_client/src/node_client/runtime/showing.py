"""What a run shows in the terminal: progress while the model loads, then the live panel."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from traceback import extract_tb
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import SegmentLines
from rich.text import Text

from node_client.display.figures import describe_bytes
from node_client.display.panel import render
from node_client.display.terminal import fold_line
from node_client.display.view import NodeView
from node_client.model.loading.progress import LoadingProgress, OnProgress

REFRESH_S = 0.5
RESTART_S = 1.0
# Pause between two lines of progress, where there is no terminal.
LINE_EVERY_S = 5.0

log = logging.getLogger(__name__)


class Runnable(Protocol):
    """What can be run and stopped: a node that is in a swarm, or one that trains alone."""

    async def run(self) -> None:
        """Run until stopped or until `settings.steps` steps are done."""

    def stop(self) -> None:
        """Ask `run` to finish its step, save and return."""


@contextmanager
def show_loading(model: str, *, console: Console) -> Iterator[OnProgress]:
    """Show the progress of loading a model. Yields the callback that receives the progress.

    A terminal shows a spinner with the progress. Without a terminal, the progress is logged. A
    download and the loading of tensors are each logged at most once in LINE_EVERY_S seconds. The
    first line about a download is logged at once. The first line about tensors is logged only after
    LINE_EVERY_S seconds.
    """
    title = f"Loading the model {fold_line(model)}"
    logged_at = {"tensors": monotonic()}

    with console.status(Text(title)) as status:

        def show(progress: LoadingProgress) -> None:
            figures = describe_progress(progress)
            if console.is_terminal:
                status.update(Text(f"{title}. {figures}"))
            elif monotonic() - logged_at.get(progress.unit, -LINE_EVERY_S) >= LINE_EVERY_S:
                logged_at[progress.unit] = monotonic()
                log.info("%s", figures)

        yield show


def describe_progress(progress: LoadingProgress) -> str:
    """Return the progress of loading a model as text, such as `Loading: 3 of 10 tensors`."""
    if progress.unit == "bytes":
        done, total = describe_bytes(progress.done), describe_bytes(progress.total)
        return f"{progress.work}: {done} of {total}"
    return f"{progress.work}: {progress.done:,} of {progress.total:,} {progress.unit}"


async def run_with_panel(
    node: Runnable,
    view: NodeView,
    *,
    console: Console,
    refresh_s: float = REFRESH_S,
    restart_s: float = RESTART_S,
) -> None:
    """Run a node until it ends, and show its panel. Raises what `node.run` raises.

    The panel is drawn every `refresh_s` seconds. An error in the panel does not stop the node;
    `show_panel` says what happens to the panel.
    """
    showing = asyncio.create_task(
        show_panel(view, console=console, refresh_s=refresh_s, restart_s=restart_s)
    )
    try:
        await node.run()
    finally:
        showing.cancel()
        await asyncio.wait([showing])


async def show_panel(
    view: NodeView, *, console: Console, refresh_s: float, restart_s: float = RESTART_S
) -> None:
    """Update the panel in the terminal until cancelled.

    If the view cannot be rendered, the last panel stays until the next update. If the terminal
    accepts no more output, the panel ends. After any other error it starts again, `restart_s`
    seconds later. Each distinct error is logged once.
    """
    logged: set[str] = set()
    task = asyncio.current_task()
    assert task is not None

    def log_once(problem: Exception) -> None:
        if repr(problem) not in logged:
            logged.add(repr(problem))
            _log_render_error(problem)

    def redraw(live: Live) -> None:
        try:
            panel = render_panel(view, console=console)
        except Exception as problem:  # noqa: BLE001 - the edge of a task that nobody awaits
            log_once(problem)
        else:
            live.update(panel, refresh=True)

    while True:
        try:
            with Live(console=console, auto_refresh=False) as live:
                try:
                    while True:
                        redraw(live)
                        await asyncio.sleep(refresh_s)
                finally:
                    redraw(live)
        except OSError as problem:
            log.warning(
                "the panel has ended: %r. Training continues; --plain prints lines instead.",
                problem,
            )
            return
        except Exception as problem:  # noqa: BLE001 - as above
            log_once(problem)
            if task.cancelling():  # the error has replaced the CancelledError
                return
        await asyncio.sleep(restart_s)


def render_panel(view: NodeView, *, console: Console) -> RenderableType:
    """Return the panel, rendered for the current size of the console."""
    # One line is for the cursor after the panel; without it the first line would scroll away.
    height = console.height - 1
    panel = render(view, now=datetime.now(UTC), clock=monotonic(), height=height)
    # Terminals echo Ctrl-C as ^C. After the last column that would start a new line.
    options = console.options.update(width=console.width - len("^C") - 1)
    # Rendered to lines here, so that errors are raised here: Live renders its content again with
    # each log line and when it stops.
    return SegmentLines(console.render_lines(panel, options), new_lines=True)


def _log_render_error(problem: Exception) -> None:
    place = extract_tb(problem.__traceback__)[-1]
    log.warning(
        "the panel cannot be rendered: %r (%s, line %s). Training continues; --plain prints lines.",
        *(problem, Path(place.filename).name, place.lineno),
    )
