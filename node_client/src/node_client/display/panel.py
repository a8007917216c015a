"""The terminal panel: a view of the node as something that rich can draw. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text

from node_client.display.fitting import Part, fit_parts
from node_client.display.health import judge_health
from node_client.display.rows import CONTINUATIONS, NAME_CHARS, list_rows
from node_client.display.terminal import fold_line
from node_client.display.view import View
from swarm_protocol.version import CLIENT_VERSION

_SIGNS = {"working": ("✓", "green"), "waiting": ("…", "yellow"), "needs attention": ("✕", "red")}
_VERDICTS = {
    "no_answer": "no <answer> tags",
    "partial": "partly right",
    "timeout": "took too long to check",
    "verifier_error": "could not be checked",
}
# The border, and a blank column inside of it on either side.
_BORDER_LINES = 2
_BORDER_COLUMNS = 4


def render(view: View, *, now: datetime, clock: float, height: int | None = None) -> RenderableType:
    """Draw a view in at most `height` lines; None draws all of it.

    `now` is the time in UTC, `clock` the monotonic time that links count in.
    """
    return _FittedPanel(tuple(_list_parts(view, now=now, clock=clock)), height)


@dataclass(frozen=True)
class _FittedPanel:
    """Takes the width from rich, because only a width tells how many lines a text fills."""

    parts: tuple[Part, ...]
    height: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = fit_parts(
            self.parts,
            console=console,
            width=options.max_width - _BORDER_COLUMNS,
            room=None if self.height is None else max(1, self.height - _BORDER_LINES),
        )
        title = f"swarm-node {CLIENT_VERSION}"
        yield Panel(Group(*lines), title=title, title_align="left", padding=(0, 1))


def _list_parts(view: View, *, now: datetime, clock: float) -> Iterator[Part]:
    yield Part("health", answer_health(view, now=now, clock=clock))
    yield Part("gap", Text())
    for name, text in list_rows(view, now=now):
        yield Part(name, text, "" if name in CONTINUATIONS else name)
    yield from _example(view)


def answer_health(view: View, *, now: datetime, clock: float) -> Text:
    """Answer "is my node working?" as the site's page of the node does."""
    health = judge_health(view, now=now, clock=clock)
    sign, colour = _SIGNS[health.state]
    name = fold_line(view.node, most=NAME_CHARS) if view.node else "This node"
    return Text.assemble(
        (f"{sign} {health.state}", f"bold {colour}"),
        f"  {name} {health.text} {health.reason}".rstrip(),
    )


def _example(view: View) -> Iterator[Part]:
    """Show what was asked and answered; both are foreign text, so markup in it means nothing."""
    if view.report is None:
        return
    example = view.report.example
    sign, style = ("✓", "green") if example.verdict.solved else ("✕", "red")
    yield Part("gap below", Text())
    yield Part("asked", Text(fold_line(example.question), "dim"), "asked")
    verdict = _VERDICTS.get(example.verdict.reason, example.verdict.reason)
    answer = Text.assemble((f"{sign} {verdict}", style), "  ", fold_line(example.completion))
    yield Part("answered", answer, "answered")
