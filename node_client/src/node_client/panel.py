"""The terminal panel: a view of the node as something that rich can draw. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from node_client.view import View

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 32
EXAMPLE_CHARS = 240


def render(view: View, *, now: datetime, clock: float) -> RenderableType:
    """Draw a view. `now` is the time in UTC, `clock` the monotonic time that links count in."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, value in (
        ("node", _node(view)),
        ("model", f"{view.model} · {view.parameters:,} parameters · {view.device}"),
        ("training", _training(view)),
        ("swarm", _swarm(view)),
        ("judge", _judge(view, now=now)),
        ("problem", _problem(view)),
    ):
        if value:
            # Wrapped, because rich would read markup in a plain string, which others can write.
            facts.add_row(label, Text(value) if isinstance(value, str) else value)
    parts: list[RenderableType] = [answer_health(view, clock=clock), Text(), facts]
    if view.report is not None:
        parts += [Text(), Rule("one answer of this node", style="dim"), _example(view)]
    return Panel(Group(*parts), title="swarm-node", title_align="left", padding=(0, 1))


def answer_health(view: View, *, clock: float) -> Text:
    """Answer "is my node working?" in one line."""
    training = (
        "no step finished yet" if view.report is None else f"training, step {view.report.step}"
    )
    if view.stopping:
        return Text("● stopping: finishes the step and saves (again: quits at once)", "yellow")
    if view.link is None:
        return Text.assemble(("● alone", "cyan"), f": {training}, no coordinator")
    if view.link.phase == "connected":
        season = (
            f"season {view.season.name}"
            if view.season
            else "no season is running, practising alone"
        )
        return Text.assemble(("● connected", "green"), f": {training} · {season}")
    if view.link.phase == "connecting":
        return Text.assemble(("● connecting", "yellow"), f": {training}")
    wait = max(0, round(view.link.retry_at - clock))
    return Text.assemble(
        (f"● offline, trying again in {wait} s", "red"),
        f": {training}; {_shorten(view.link.reason)}",
    )


def sparkline(values: Sequence[float], *, width: int = CURVE_WIDTH) -> str:
    """Draw values in [0, 1] as at most `width` bars; each is the mean of neighbouring values."""
    if not values:
        return ""
    width = min(width, len(values))
    bars = []
    for place in range(width):
        start, end = place * len(values) // width, (place + 1) * len(values) // width
        mean = sum(list(values)[start:end]) / (end - start)
        bars.append(BARS[min(int(mean * len(BARS)), len(BARS) - 1)])
    return "".join(bars)


def describe_step(view: View) -> str:
    """Say in one line what the latest step did."""
    report, totals = view.report, view.totals
    if report is None or totals is None:
        return "no step finished yet"
    seconds = sum(report.seconds.values())
    return (
        f"step {report.step} · training reward {report.training_reward:.3f}"
        f" · informative {report.informative_share:.0%}"
        f" · {report.local_used} local + {report.external_used} external · {seconds:.1f} s"
    )


def _node(view: View) -> str:
    if view.site is None:
        return ""
    if not view.node:
        return view.site.base
    return f"{view.node} · {view.arm}\n{view.site.page(view.node)}"


def _training(view: View) -> Text | str:
    report = view.report
    if report is None:
        return f"resumed at step {view.resumed_step}" if view.resumed_step else "first step runs"
    recent = list(view.curve)[-20:]
    seconds = sum(report.seconds.values())
    return Text.assemble(
        f"training reward {sum(recent) / len(recent):.3f} ",
        (sparkline(view.curve), "blue"),
        f"\ninformative {report.informative_share:.0%} · cut short {report.clipped_ratio:.0%}"
        f" · {report.completion_length:.0f} tokens each · {seconds:.1f} s a step",
    )


def _swarm(view: View) -> str:
    if view.site is None or view.totals is None:
        return ""
    shared = f"{view.published:,} rollouts shared"
    if view.unpublished:
        shared += f", {view.unpublished:,} dropped unsent"
    dropped = " · ".join(
        f"{reason.replace('_', ' ')} {count:,}"
        for reason, count in sorted(view.totals.external_dropped.items())
    )
    used = "" if view.arm == "isolated" else f" · {view.totals.external_used:,} external used"
    return f"{shared}{used}" + (f"\ndropped: {dropped}" if dropped else "")


def _judge(view: View, *, now: datetime) -> str:
    if view.site is None:
        return ""
    return f"{_round(view, now=now)}\n{_standing(view)}"


def _round(view: View, *, now: datetime) -> str:
    current = view.round
    if current is None:
        return "no round yet"
    phase = f"round {current.number} is {current.phase}"
    server_now = now + timedelta(seconds=view.clock_ahead_s)
    if current.phase == "scheduled":
        return f"{phase}, opens in {_countdown(current.opens_at, server_now)}"
    answered = f"{view.answered[current.number]} of {current.questions} answered"
    if current.phase == "open":
        return f"{phase}, closes in {_countdown(current.closes_at, server_now)} · {answered}"
    return f"{phase} · {answered}"


def _standing(view: View) -> str:
    standing = view.standing
    if standing is None or standing.score is None:
        return "no judge score yet: it comes after the first round that this node answers"
    score = f"judge score {standing.score:.3f}"
    if standing.interval is not None:
        low, high = standing.interval
        score += f", 95 % interval {low:.3f}–{high:.3f}"
    rank = ""
    if standing.rank is not None:
        low_rank, high_rank = standing.rank
        rank = f" · rank {low_rank}" + (f"–{high_rank}" if high_rank != low_rank else "")
    return f"{score}, n = {standing.n:,}{rank}"


def _problem(view: View) -> Text | str:
    problem = view.problem
    if problem is None:
        return ""
    return Text.assemble(
        (f"{problem.at:%H:%M:%S} UTC {problem.code}", "yellow"),
        f": {_shorten(problem.message)}\n{_shorten(problem.fix)}",
    )


def _example(view: View) -> RenderableType:
    """Show what was asked and answered; both are foreign text, so markup in it means nothing."""
    assert view.report is not None
    example = view.report.example
    sign, style = ("✓", "green") if example.verdict.solved else ("✗", "red")
    return Group(
        Text(_shorten(example.question), "dim"),
        Text.assemble(
            _shorten(example.completion),
            "  ",
            (f"{sign} {example.verdict.reason.replace('_', ' ')}", style),
        ),
    )


def _shorten(text: str) -> str:
    """Fold white space and drop control characters, which could steer the terminal."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= EXAMPLE_CHARS else f"{line[:EXAMPLE_CHARS]}…"


def _countdown(moment: str, now: datetime) -> str:
    seconds = max(0, round((datetime.fromisoformat(moment) - now).total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes}:{seconds:02d}"
