"""One arm of a report: its runs' outcomes, their means over the paired seeds, and its curves."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from node_client.lab.config import ExperimentArm
from node_client.lab.intervals import mean_band, mean_interval
from node_client.lab.onset import WINDOW, moving_average
from node_client.lab.outcomes import cumulative_rewards, measure_held_out, spread, take_off
from node_client.lab.report.numbers import all_rounded, rounded, rounded_median, spaced_places
from node_client.lab.report.shape import (
    ArmReport,
    Curve,
    Curves,
    Estimate,
    GroupOfNodes,
    SeedOutcome,
)
from node_client.lab.results import ArmData, RunData
from node_client.lab.statistics import Floats

MAX_POINTS = 200
# Random completions contain a few of the reflection words.
SEEN = 0.01
_DEFAULTS = ExperimentArm(name="any")


def describe_arm(data: ArmData, *, paired: Sequence[int], take_off_at: float) -> ArmReport:
    """Return the report of an arm.

    Its means, medians and curves are over the runs with the seeds `paired`. Its `seeds` has the
    outcomes of all runs of the arm. `take_off_at` is the own reward above which a run counts as
    taken off.
    """
    outcomes = [describe_run(run, take_off_at=take_off_at) for run in data.runs.values()]
    counted = [outcome for outcome in outcomes if outcome.seed in paired]
    runs = [data.runs[seed] for seed in paired]

    def mean(name: str) -> float:
        return rounded(fmean(getattr(outcome, name) for outcome in counted))

    def held_out_mean(name: str) -> float | None:
        return None if counted[0].held_out_final is None else mean(name)

    return ArmReport(
        name=data.arm.name,
        design=data.design,
        settings=_settings(data),
        nodes=len(data.plans),
        attackers=sum(group.nodes for group in data.arm.groups if group.attack != "none"),
        groups=_groups(data),
        seeds=outcomes,
        own=_estimate([outcome.own_by_node for outcome in counted]),
        training_set=_estimate([outcome.training_set_by_node for outcome in counted]),
        held_out_area=_known_values([outcome.held_out_area_by_node for outcome in counted]),
        held_out_final=_known_values([outcome.held_out_final_by_node for outcome in counted]),
        forgetting=held_out_mean("forgetting"),
        drawdown=held_out_mean("drawdown"),
        wobble=held_out_mean("wobble"),
        take_off=rounded_median([outcome.take_off for outcome in counted]),
        tokens=mean("tokens"),
        bytes=rounded(fmean(outcome.sent + outcome.received for outcome in counted)),
        informative=mean("informative"),
        informative_in_set=mean("informative_in_set"),
        external=mean("external"),
        spread=mean("spread"),
        held_out_spread=held_out_mean("held_out_spread"),
        poisoned=mean("poisoned"),
        curves=_curves(runs),
    )


def describe_run(run: RunData, *, take_off_at: float) -> SeedOutcome:
    """Return the outcomes of a run; its take-off is measured with the threshold `take_off_at`."""
    own, training_set, held_out = (
        cumulative_rewards(run.reward),
        cumulative_rewards(run.set_reward),
        measure_held_out(run),
    )
    return SeedOutcome(
        seed=run.seed,
        own=rounded(own.mean()),
        training_set=rounded(training_set.mean()),
        held_out_area=rounded(held_out.area.mean()) if held_out else None,
        held_out_final=rounded(held_out.final.mean()) if held_out else None,
        forgetting=rounded(held_out.forgetting) if held_out else None,
        drawdown=rounded(held_out.drawdown) if held_out else None,
        wobble=rounded(held_out.wobble) if held_out else None,
        take_off=take_off(run.reward, above=take_off_at),
        tokens=int(run.tokens.sum()),
        sent=int(run.sent.sum()),
        received=int(run.received.sum()),
        informative=rounded(run.informative.mean()),
        informative_in_set=rounded(run.informative_in_set.mean()),
        external=rounded(run.external.mean()),
        length=rounded(run.length[-WINDOW:].mean()),
        reflection=rounded(run.reflection[-WINDOW:].mean()),
        poisoned=rounded(run.poisoned[-WINDOW:].mean()),
        spread=rounded(spread(own)),
        held_out_spread=rounded(spread(held_out.final)) if held_out else None,
        own_by_node=all_rounded(own),
        training_set_by_node=all_rounded(training_set),
        held_out_area_by_node=all_rounded(held_out.area) if held_out else [],
        held_out_final_by_node=all_rounded(held_out.final) if held_out else [],
    )


def _settings(data: ArmData) -> str:
    arm = data.arm
    of_pool = {
        name: getattr(arm, name)
        for name in ("drawing", "source", "pool_rounds")
        if getattr(arm, name) != getattr(_DEFAULTS, name)
    }
    parts = [f"{name} = {value}" for name, value in {**arm.train, **of_pool}.items()]
    for group in arm.groups:
        own = ", ".join(f"{name} = {value}" for name, value in group.train.items())
        what = (
            f" that {group.attack}" if group.attack != "none" else f" of {group.base or 'the base'}"
        )
        parts.append(f"{group.nodes} nodes{what}{f' ({own})' if own else ''}")
    return ", ".join(parts)


def _groups(data: ArmData) -> list[GroupOfNodes]:
    """Return the arm's groups of nodes that train; empty if there are fewer than two."""
    training = [group for group in data.arm.groups if group.attack == "none"]
    if len(training) < 2:
        return []
    groups, first = [], 0
    for group in training:
        last = first + group.nodes - 1
        name = f"nodes {first + 1}–{last + 1} ({data.plans[first].base})"
        groups.append(GroupOfNodes(name=name, first=first, last=last))
        first = last + 1
    return groups


def _estimate(by_node: Sequence[list[float]]) -> Estimate:
    values = np.array(by_node, dtype=np.float64)
    interval = mean_interval(values)
    if interval is None:
        return Estimate(rounded(float(values.mean())))
    return Estimate(rounded(float(values.mean())), *map(rounded, interval))


def _known_values(by_node: Sequence[list[float]]) -> Estimate | None:
    return _estimate(by_node) if all(by_node) else None


def _curves(runs: Sequence[RunData]) -> Curves:
    rewards = [run.reward for run in runs]
    reflection = [run.reflection for run in runs]
    poisoned = [run.poisoned for run in runs]
    return Curves(
        own=_smooth(rewards, band=True),
        cumulative=_curve(
            np.stack([reward.cumsum(axis=0).T for reward in rewards]),
            range(1, len(rewards[0]) + 1),
            band=True,
        ),
        held_out=_held_out(runs),
        informative=_smooth([run.informative for run in runs], band=False),
        length=_smooth([run.length for run in runs], band=False),
        reflection=_smooth(reflection, band=False) if _are_seen(reflection) else None,
        poisoned=_smooth(poisoned, band=False) if np.any(poisoned) else None,
    )


def _are_seen(shares: Sequence[Floats]) -> bool:
    """Return whether the mean over runs and nodes reaches SEEN in any round.

    `shares` has an array (rounds, nodes) for each run: the share of completions with reflection.
    """
    return bool(np.mean(shares, axis=(0, 2)).max() >= SEEN)


def _smooth(values: Sequence[Floats], *, band: bool) -> Curve:
    """Return the mean curve of runs (rounds, nodes), as a moving average over ten rounds."""
    curves = moving_average(np.stack([each.T for each in values]))
    last = len(values[0])
    return _curve(curves, range(last - curves.shape[-1] + 1, last + 1), band=band)


def _held_out(runs: Sequence[RunData]) -> Curve | None:
    if not all(run.held_out_rounds for run in runs):
        return None
    return _curve(np.stack([run.held_out.T for run in runs]), runs[0].held_out_rounds, band=True)


def _curve(curves: Floats, rounds: Sequence[int], *, band: bool) -> Curve:
    """Return the mean of curves (seeds, nodes, rounds) over seeds and nodes.

    The curve has at most MAX_POINTS points. If `band` is true and there are enough seeds, each
    point has an interval.
    """
    kept = spaced_places(curves.shape[-1], most=MAX_POINTS)
    curves = curves[..., kept]
    ends = mean_band(curves) if band else None
    return Curve(
        [rounds[place] for place in kept],
        all_rounded(curves.mean(axis=(0, 1))),
        *map(all_rounded, ends or ()),
    )
