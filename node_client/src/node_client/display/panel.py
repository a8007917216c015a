"""The terminal panel: renders a node's view with rich."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text

from node_client.display.fitting import PanelRow, fit_rows
from node_client.display.health import assess_health
from node_client.display.rows import CONTINUATIONS, NAME_CHARS, list_rows
from node_client.display.terminal import fold_line
from node_client.display.view import NodeView
from swarm_protocol.version import CLIENT_VERSION

_SIGNS = {"working": ("✓", "green"), "waiting": ("…", "yellow"), "needs attention": ("✕", "red")}
_VERDICTS = {
    "no_answer": "no <answer> tags",
    "partial": "partly right",
    "timeout": "took too long to check",
    "verifier_error": "could not be checked",
}
# What the border takes, with a blank column inside on each side.
_BORDER_LINES = 2
_BORDER_COLUMNS = 4


def render(
    view: NodeView, *, now: datetime, clock: float, height: int | None = None
) -> RenderableType:
    """Return a view as a panel of at most `height` lines; None sets no limit.

    `now` is the time in UTC, and `clock` the monotonic time in seconds (see `assess_health`).
    """
    return _FittedPanel(tuple(_list_rows(view, now=now, clock=clock)), height)


@dataclass(frozen=True)
class _FittedPanel:
    """A panel that fits its rows when rich renders it, because only then the width is known."""

    rows: tuple[PanelRow, ...]
    height: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = fit_rows(
            self.rows,
            console=console,
            width=options.max_width - _BORDER_COLUMNS,
            height=None if self.height is None else max(1, self.height - _BORDER_LINES),
        )
        title = f"swarm-node {CLIENT_VERSION}"
        yield Panel(Group(*lines), title=title, title_align="left", padding=(0, 1))


def _list_rows(view: NodeView, *, now: datetime, clock: float) -> Iterator[PanelRow]:
    yield PanelRow("health", answer_health(view, now=now, clock=clock))
    yield PanelRow("gap", Text())
    for name, text in list_rows(view, now=now):
        yield PanelRow(name, text, "" if name in CONTINUATIONS else name)
    yield from _example(view)


def answer_health(view: NodeView, *, now: datetime, clock: float) -> Text:
    """Return a node's health as a line of text, such as `✓ working  NAME is healthy. REASON`."""
    health = assess_health(view, now=now, clock=clock)
    sign, colour = _SIGNS[health.state]
    name = fold_line(view.node, limit=NAME_CHARS) if view.node else "This node"
    return Text.assemble(
        (f"{sign} {health.state}", f"bold {colour}"),
        f"  {name} {health.text} {health.reason}".rstrip(),
    )


def _example(view: NodeView) -> Iterator[PanelRow]:
    """Yield rows for the latest step's example question, and for a completion with its verdict.

    Markup in the question and in the completion is not interpreted.
    """
    if view.report is None:
        return
    example = view.report.example
    sign, style = ("✓", "green") if example.verdict.solved else ("✕", "red")
    yield PanelRow("gap below", Text())
    yield PanelRow("asked", Text(fold_line(example.question), "dim"), "asked")
    verdict = _VERDICTS.get(example.verdict.reason, example.verdict.reason)
    answer = Text.assemble((f"{sign} {verdict}", style), "  ", fold_line(example.completion))
    yield PanelRow("answered", answer, "answered")
