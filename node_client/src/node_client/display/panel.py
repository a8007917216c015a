"""The terminal panel: a view of the node as something that rich can draw. Pure."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from node_client.display.health import judge_health
from node_client.display.rows import list_rows
from node_client.display.terminal import fold_line
from node_client.display.view import View
from swarm_protocol.version import CLIENT_VERSION

_SIGNS = {"working": ("✓", "green"), "waiting": ("…", "yellow"), "needs you": ("✕", "red")}


def render(view: View, *, now: datetime, clock: float) -> RenderableType:
    """Draw a view. `now` is the time in UTC, `clock` the monotonic time that links count in."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, text in list_rows(view, now=now):
        facts.add_row(label, text)
    parts: list[RenderableType] = [answer_health(view, now=now, clock=clock), Text(), facts]
    if view.report is not None:
        parts += [Text(), Rule("one answer of this node", style="dim"), _example(view)]
    title = f"swarm-node {CLIENT_VERSION}"
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def answer_health(view: View, *, now: datetime, clock: float) -> Text:
    """Answer "is my node working?" as the site's page of the node does."""
    health = judge_health(view, now=now, clock=clock)
    sign, colour = _SIGNS[health.state]
    name = fold_line(view.node) if view.node else "This node"
    return Text.assemble(
        (f"{sign} {health.state}", f"bold {colour}"), f"  {name} {health.text} {health.reason}"
    )


def _example(view: View) -> RenderableType:
    """Show what was asked and answered; both are foreign text, so markup in it means nothing."""
    assert view.report is not None
    example = view.report.example
    sign, style = ("✓", "green") if example.verdict.solved else ("✕", "red")
    return Group(
        Text(fold_line(example.question), "dim"),
        Text.assemble(
            fold_line(example.completion),
            "  ",
            (f"{sign} {example.verdict.reason.replace('_', ' ')}", style),
        ),
    )
