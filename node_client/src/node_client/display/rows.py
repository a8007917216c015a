"""The texts of the panel's rows.

Texts from the coordinator are folded into one line without control characters.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from statistics import fmean

from rich.text import Text

from node_client.display.figures import (
    count_down,
    describe_age,
    describe_bytes,
    describe_rank,
    describe_trend,
    explain_remark,
    sparkline,
)
from node_client.display.terminal import fold_line
from node_client.display.view import NodeView
from node_client.swarm.exchange import may_publish

# Number of latest steps whose mean reward is shown beside the reward of the latest one.
RECENT_STEPS = 20
_TREND_SIGNS = {"rising": "▲ rising", "falling": "▼ falling", "steady": "▶ steady", "": ""}
# How the coordinator hands out this node's rollouts (`NodeStanding.hand_out`).
_HAND_OUT = {
    "lowered": "handed out a quarter as often as those of others; this node's page says why",
    "withheld": "withheld from other nodes; this node's page says why",
}


# Length of the longest name that a coordinator gives.
NAME_CHARS = 64
# Rows that continue the row above and have no label.
CONTINUATIONS = frozenset({"curve", "fix"})


def list_rows(view: NodeView, *, now: datetime) -> Iterator[tuple[str, Text]]:
    """Yield the name and the text of each row of the panel whose text is not empty."""
    rows: tuple[tuple[str, Text | str], ...] = (
        ("node", _node(view)),
        ("model", f"{fold_line(view.model)} · {view.parameters:,} parameters · {view.device}"),
        ("season", _season(view)),
        ("round", _round(view, now=now)),
        ("judge", _judge(view)),
        ("training", _training(view)),
        ("curve", _curve(view)),
        ("held out", _held_out(view)),
        ("given", _shared(view)),
        ("taken", _received(view)),
        ("machine", _machine(view)),
        ("saved", _saved(view, now=now)),
        ("all runs", _all_runs(view)),
        *(("notice", text) for text in _notices(view)),
        ("problem", _problem(view)),
        ("fix", "" if view.problem is None else fold_line(view.problem.fix)),
    )
    for label, value in rows:
        if value:
            # As Text, because rich would interpret markup in a plain string.
            yield label, Text(value) if isinstance(value, str) else value


def _node(view: NodeView) -> str:
    if view.site is None:
        return ""
    if not view.node:
        return view.site.base
    return f"{fold_line(view.node, limit=NAME_CHARS)} · arm {view.arm}\n{view.site.page(view.node)}"


def _season(view: NodeView) -> str:
    if view.season is None:
        return ""
    rules = view.season
    return f"{fold_line(rules.name)} · {rules.local} local + {rules.external} external a step"


def _round(view: NodeView, *, now: datetime) -> str:
    current = view.round
    if view.site is None or current is None:
        return "" if view.site is None else "none yet"
    from_server = now + timedelta(seconds=view.clock_ahead_s)
    if current.number == view.skipped_round:
        return f"waiting for the next round (joined after round {current.number} opened)"
    if current.phase == "scheduled":
        return f"{current.number} opens in {count_down(current.opens_at, now=from_server)}"
    answered = f"{view.answered[current.number]} of {current.questions} answered"
    if current.phase == "open":
        closing = count_down(current.closes_at, now=from_server)
        return f"{current.number} is open, closes in {closing} · {answered}"
    return f"{current.number} is {current.phase} · {answered}"


def _judge(view: NodeView) -> str:
    if view.site is None:
        return ""
    standing = view.standing
    remark = explain_remark(fold_line(standing.remark)) if standing is not None else ""
    if standing is None or standing.score is None:
        return remark or "no score yet: it comes after the first round that this node answers"
    score = f"score {standing.score:.3f}"
    if standing.rank is not None:
        score += f" · rank {describe_rank(standing.rank, ranked=standing.ranked)}"
    if standing.interval is not None:
        low, high = standing.interval
        score += f"\n95 % interval {low:.3f}–{high:.3f}, n = {standing.n:,}"
        score += f" from {standing.rounds:,} round" + ("s" if standing.rounds != 1 else "")
    return f"{score}\n{remark}" if remark else score


def _training(view: NodeView) -> str:
    if view.arm == "base":
        return "none: a base node answers with its model untrained, for comparison"
    report = view.report
    if report is None:
        resumed = f"resumed at step {view.resumed_step:,}; " if view.resumed_step else ""
        return f"{resumed}no step finished yet" + _mean(view.curve)
    return (
        f"step {report.step:,} · training reward {report.training_reward:.3f}{_mean(view.curve)}"
        f"\ninformative {report.informative_share:.0%} · cut short {report.clipped_ratio:.0%}"
        f" · {report.completion_length:.0f} tokens each"
    )


def _mean(rewards: Sequence[float]) -> str:
    """Return the mean reward of the latest RECENT_STEPS steps as text; empty without rewards."""
    recent = list(rewards)[-RECENT_STEPS:]
    return f" · mean of {len(recent)}: {fmean(recent):.3f}" if recent else ""


def _curve(view: NodeView) -> Text | str:
    """Return the training rewards of the latest steps as a curve, with their trend."""
    if view.arm == "base" or not view.curve:
        return ""
    trend = describe_trend(view.curve)
    colour = {"rising": "green", "falling": "red"}.get(trend, "dim")
    sign = f" {_TREND_SIGNS[trend]}" if trend else ""
    return Text.assemble((sparkline(view.curve), "cyan"), (sign, colour))


def _held_out(view: NodeView) -> str:
    if view.held_out is None:
        return ""
    return f"{view.held_out}, at step {view.held_out_step:,}"


def _shared(view: NodeView) -> str:
    """Return how many rollouts this node published in the season, or why it publishes none.

    Add how often other nodes received and used these rollouts, if the coordinator reported it.
    """
    if view.site is None or view.arm == "base":
        return ""
    if view.season is not None and not may_publish(view.arm, view.season):
        return "nothing: in this season isolated nodes keep their rollouts"
    standing = view.standing
    shared = f"{view.published_before + view.published:,} rollouts published"
    if standing is not None and standing.delivered_to_others is not None:
        shared += f" · delivered to others {standing.delivered_to_others:,} times"
    if standing is not None and standing.used_by_others is not None:
        shared += f" · used by others {standing.used_by_others:,} times"
    shared += f" · {view.unpublished:,} dropped unsent" if view.unpublished else ""
    held = _HAND_OUT.get(standing.hand_out or "") if standing is not None else None
    return f"{shared}\n{held}" if held else shared


def _received(view: NodeView) -> str:
    """Return how many external rollouts were used, and how many were dropped for which reasons."""
    report, totals = view.report, view.totals
    if view.site is None or report is None or totals is None or view.arm == "base":
        return ""
    mix = f"{report.local_used} local + {report.external_used} external in the last step"
    if view.arm == "isolated":
        return mix
    dropped = " · ".join(
        f"{fold_line(reason).replace('_', ' ')} {count:,}"
        for reason, count in sorted(totals.external_dropped.items())
    )
    # The coordinator's figure, as on the node's page, once it is known: after a fresh start the
    # local one is smaller.
    standing = view.standing
    external = totals.external_used if standing is None else standing.external_used
    used = f"{mix}\n{external:,} external used this season"
    return f"{used}\ndropped: {dropped}" if dropped else used


def _machine(view: NodeView) -> str:
    texts = []
    if view.report is not None:
        seconds = sum(view.report.seconds.values())
        texts = [f"{view.tokens_per_second:,.0f} tokens/s", f"{seconds:.2g} s a step"]
    if view.memory_use is not None:
        texts.append(f"memory {describe_bytes(view.memory_use.process)}")
        if view.memory_use.accelerator is not None:
            texts.append(f"{view.device} {describe_bytes(view.memory_use.accelerator)}")
    return " · ".join(texts)


def _saved(view: NodeView, *, now: datetime) -> str:
    if view.saved is not None:
        return f"step {view.saved.step:,}, {describe_age(view.saved.moment, now=now)}"
    return f"step {view.resumed_step:,}, resumed from it" if view.resumed_step else ""


def _all_runs(view: NodeView) -> str:
    """Return the totals of all runs as text; empty if no run before this one finished a step."""
    life = view.lifetime
    if life.steps <= view.steps_this_run:
        return ""
    return (
        f"{life.steps:,} steps · {life.tokens:,} tokens · {life.rollouts_made:,} rollouts made"
        f" · {life.external_used:,} external used · {life.seconds / 3600:.1f} h"
    )


def _notices(view: NodeView) -> Iterator[Text]:
    if view.upgrade is not None:
        yield Text(view.upgrade, "yellow")
    for notice in view.notices:
        yield Text(f"{notice.moment:%H:%M:%S} UTC: {fold_line(notice.message)}")


def _problem(view: NodeView) -> Text | str:
    problem = view.problem
    if problem is None:
        return ""
    return Text.assemble(
        (f"{problem.moment:%H:%M:%S} UTC {fold_line(problem.code)}", "yellow"),
        f": {fold_line(problem.message)}",
    )
