"""The terminal panel: a view of the node as something that rich can draw. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from node_client.display.remarks import explain_remark
from node_client.display.terminal import fold_line
from node_client.display.view import View

BARS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 32


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
        ("notice", _notice(view)),
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
    training = _occupation(view)
    if view.stopping:
        work = "hands in what it owes" if view.arm == "base" else "finishes the step and saves"
        return Text(f"● stopping: {work} (again: quits at once)", "yellow")
    if view.link is None:
        return Text.assemble(("● alone", "cyan"), f": {training}, no coordinator")
    if view.link.phase == "connected":
        return Text.assemble(("● connected", "green"), f": {training} · {_season(view)}")
    if view.link.phase == "connecting":
        return Text.assemble(("● connecting", "yellow"), f": {training}")
    wait = max(0, round(view.link.retry_at - clock))
    return Text.assemble(
        (f"● offline, trying again in {wait} s", "red"),
        f": {training}; {fold_line(view.link.reason)}",
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
    if view.arm == "base":
        return "arm base: nothing was trained"
    if report is None or totals is None:
        return "no step finished yet"
    seconds = sum(report.seconds.values())
    return (
        f"step {report.step} · training reward {report.training_reward:.3f}"
        f" · informative {report.informative_share:.0%}"
        f" · {report.local_used} local + {report.external_used} external · {seconds:.1f} s"
    )


def describe_upgrade(oldest: str) -> str:
    """Say in one line that this client will be refused soon; `oldest` is the first that will not.

    The version is the coordinator's word, so it cannot be trusted to be one.
    """
    return (
        f"clients older than {fold_line(oldest, most=20)} will be refused soon:"
        " pip install --upgrade swarm-node"
    )


def _occupation(view: View) -> str:
    if view.arm == "base":
        return "answering the judge, untrained"
    return "no step finished yet" if view.report is None else f"training, step {view.report.step}"


def _season(view: View) -> str:
    if view.season is not None:
        return f"season {view.season.name}"
    return "no season is running" + ("" if view.arm == "base" else ", practising alone")


def _node(view: View) -> str:
    if view.site is None:
        return ""
    if not view.node:
        return view.site.base
    return f"{view.node} · {view.arm}\n{view.site.page(view.node)}"


def _training(view: View) -> Text | str:
    if view.arm == "base":
        return "none: a base node answers with its model untouched, for comparison"
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
    if current.number == view.sat_out:
        return f"waiting for the next round (joined after round {current.number} opened)"
    server_now = now + timedelta(seconds=view.clock_ahead_s)
    if current.phase == "scheduled":
        return f"{phase}, opens in {_countdown(current.opens_at, server_now)}"
    answered = f"{view.answered[current.number]} of {current.questions} answered"
    if current.phase == "open":
        return f"{phase}, closes in {_countdown(current.closes_at, server_now)} · {answered}"
    return f"{phase} · {answered}"


def _standing(view: View) -> str:
    standing = view.standing
    remark = explain_remark(standing.remark) if standing is not None else ""
    if standing is None or standing.score is None:
        return remark or "no judge score yet: it comes after the first round that this node answers"
    score = f"judge score {standing.score:.3f}"
    if standing.interval is not None:
        low, high = standing.interval
        score += f", 95 % interval {low:.3f}–{high:.3f}"
    place = f"\n{remark}" if remark else ""
    if standing.rank is not None:
        low_rank, high_rank = standing.rank
        place = f" · rank {low_rank}" + (f"–{high_rank}" if high_rank != low_rank else "")
    return f"{score}, n = {standing.n:,}{place}"


def _notice(view: View) -> Text | str:
    return Text(describe_upgrade(view.upgrade), "yellow") if view.upgrade is not None else ""


def _problem(view: View) -> Text | str:
    problem = view.problem
    if problem is None:
        return ""
    return Text.assemble(
        (f"{problem.at:%H:%M:%S} UTC {problem.code}", "yellow"),
        f": {fold_line(problem.message)}\n{fold_line(problem.fix)}",
    )


def _example(view: View) -> RenderableType:
    """Show what was asked and answered; both are foreign text, so markup in it means nothing."""
    assert view.report is not None
    example = view.report.example
    sign, style = ("✓", "green") if example.verdict.solved else ("✗", "red")
    return Group(
        Text(fold_line(example.question), "dim"),
        Text.assemble(
            fold_line(example.completion),
            "  ",
            (f"{sign} {example.verdict.reason.replace('_', ' ')}", style),
        ),
    )


def _countdown(moment: str, now: datetime) -> str:
    seconds = max(0, round((datetime.fromisoformat(moment) - now).total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes}:{seconds:02d}"
