"""The tables of a report's page. A cell may have two lines: a value and its interval."""

from collections.abc import Callable
from typing import Any

from node_client.lab.report.claims import gains_in_own_reward
from node_client.lab.report.figures import Table
from node_client.lab.report.numbers import (
    NONE,
    format_bytes,
    format_gain,
    format_gain_interval,
    format_interval,
    format_number,
    format_p,
    format_signed,
)
from node_client.lab.report.shape import (
    ArmComparison,
    ArmReport,
    Estimate,
    GainAfter,
    Outcome,
    Report,
)

NAMES: dict[Outcome, str] = {
    "own": "cumulative own reward",
    "held_out_area": "held-out, area",
    "held_out_final": "held-out, final",
    "training_set": "training set's reward, summed (Tⁿ)",
    "forgetting": "forgetting",
    "drawdown": "drawdown",
    "poisoned": "planted text",
}


def main_table(report: Report) -> Table:
    """Return the table of each arm's outcomes and its gain over the baseline."""
    own = gains_in_own_reward(report.comparisons)

    def cells(arm: ArmReport) -> list[str]:
        gain = own.get(arm.name)
        return [
            arm.name,
            _estimate(arm.own),
            _with_interval(gain) if gain else "baseline",
            format_p(gain.p_adjusted) if gain else "",
            _estimate(arm.held_out_area),
            _estimate(arm.held_out_final),
            _estimate(arm.training_set),
            NONE if arm.take_off is None else f"{arm.take_off:.0f}",
            format_number(arm.tokens),
            format_bytes(arm.bytes),
            format_number(arm.informative_in_set),
        ]

    return Table(
        head=[
            "arm",
            "cumulative own reward",
            "gain",
            "p (Holm)",
            "held-out, area",
            "held-out, final",
            "Tⁿ, summed",
            "take-off round",
            "tokens",
            "exchanged",
            "informative in a set",
        ],
        rows=[cells(arm) for arm in report.arms],
    )


def steadiness_table(report: Report) -> Table:
    """Return the table of how much each arm's scores fall, fluctuate and differ between nodes.

    It also has the share of own rollouts that are informative, the number of external rollouts in a
    training set, and, if there are attackers, the share of completions with the planted text.
    """
    columns: dict[str, Callable[[ArmReport], Any]] = {
        "forgetting": lambda arm: arm.forgetting,
        "drawdown": lambda arm: arm.drawdown,
        "wobble": lambda arm: arm.wobble,
        "spread of own reward": lambda arm: arm.spread,
        "spread of held-out": lambda arm: arm.held_out_spread,
        "own rollouts informative": lambda arm: arm.informative,
        "external in a set": lambda arm: arm.external,
    }
    if any(arm.attackers for arm in report.arms):
        columns["planted text"] = lambda arm: arm.poisoned
    return Table(
        head=["arm", *columns],
        rows=[
            [arm.name, *(format_number(of(arm)) for of in columns.values())] for arm in report.arms
        ],
    )


def horizon_table(report: Report) -> Table:
    """Return the table of the gains over the baseline after each fifth of the rounds.

    `report.horizons` must not be empty.
    """
    ends = [each.rounds for each in report.horizons[0].gains]
    return Table(
        head=["arm", *(f"{end} rounds" for end in ends)],
        rows=[
            [each.arm, *(_with_interval(after) for after in each.gains)] for each in report.horizons
        ],
    )


def reached_table(report: Report) -> Table:
    """Return the table of when each arm reaches the baseline's final held-out score."""
    return Table(
        head=["arm", "runs that get there", "rounds", "tokens generated"],
        rows=[
            [
                each.arm,
                f"{each.runs} of {len(report.seeds)}",
                format_number(each.rounds),
                format_number(each.tokens),
            ]
            for each in report.reached
        ],
    )


def comparison_table(report: Report) -> Table:
    """Return the table of all comparisons, ordered by outcome."""

    def cells(each: ArmComparison) -> list[str]:
        return [
            each.arm + (f", {each.group}" if each.group else ""),
            NAMES[each.outcome],
            format_gain(each.gain),
            format_gain_interval(each.gain_low, each.gain_high),
            format_signed(each.difference),
            format_interval(each.difference_low, each.difference_high),
            format_p(each.p),
            format_p(each.p_greater),
            format_p(each.p_adjusted),
        ]

    order = list(NAMES)
    return Table(
        head=[
            "arm",
            "outcome",
            "gain",
            "95 % interval",
            "difference",
            "95 % interval",
            "p",
            "p, one-sided",
            "p (Holm)",
        ],
        rows=[
            cells(each)
            for each in sorted(report.comparisons, key=lambda each: order.index(each.outcome))
        ],
    )


def seed_table(report: Report) -> Table:
    """Return the table of each run's outcomes."""
    return Table(
        head=["arm", "seed", *NAMES.values(), "take-off round", "tokens", "exchanged"],
        rows=[
            [
                arm.name,
                str(seed.seed),
                *(format_number(getattr(seed, outcome)) for outcome in NAMES),
                NONE if seed.take_off is None else str(seed.take_off),
                format_number(seed.tokens),
                format_bytes(seed.sent + seed.received),
            ]
            for arm in report.arms
            for seed in arm.seeds
        ],
    )


def paper_table(report: Report) -> Table:
    """Return the table of the results that the SAPO paper reports."""
    return Table(
        head=["arm", "total reward", "gain"],
        rows=[
            [arm.name, f"{arm.total:,.2f}", format_gain(arm.gain) if arm.gain != 1 else "baseline"]
            for arm in report.paper
        ],
    )


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return NONE
    value = format_number(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value}\n{format_interval(estimate.low, estimate.high)}"


def _with_interval(found: ArmComparison | GainAfter) -> str:
    gain = format_gain(found.gain)
    if found.gain_low is None:
        return gain
    return f"{gain}\n{format_gain_interval(found.gain_low, found.gain_high)}"
