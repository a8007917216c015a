"""What an experiment shows, in sentences made from its numbers."""

from collections.abc import Sequence

from node_client.lab.report.shape import Comparison
from node_client.lab.report.words import say_gain, say_gain_interval, say_p, say_p_is
from node_client.lab.results import Results
from node_client.lab.statistics import LEVEL


def headline(comparisons: Sequence[Comparison], *, baseline: str, arms: int) -> str:
    """Return what the experiment shows about cumulative own reward.

    `arms` are to be compared with the baseline, also if some have no runs yet.
    """
    own = _of_own_reward(comparisons)
    if not own:
        return f"Only the baseline {baseline} has been run, so there is nothing to compare."
    best = max(own, key=lambda comparison: comparison.difference)
    better = [each for each in own if each.p_adjusted <= LEVEL and each.difference > 0]
    worse = [each for each in own if each.p_adjusted <= LEVEL and each.difference < 0]
    figures = _figures(best, of=arms)
    what = f"over {baseline} in cumulative own reward"
    if best in better:
        said = f"{best.arm} gained {'most ' if len(own) > 1 else ''}{what}: {figures}."
    elif best.difference > 0 and best.least_p * arms > LEVEL:
        said = f"Too few seeds to show a gain of {best.arm} {what}: {figures}."
    elif best.difference > 0:
        said = f"No gain {what} beyond chance; the largest is {best.arm}'s: {figures}."
    else:
        said = f"No gain {what}; the smallest loss is {best.arm}'s: {figures}."
    if len(own) > 1 and better:
        said += f" {len(better)} of {len(own)} arms are better than the baseline beyond chance."
    if worse:
        said += f" Worse beyond chance: {', '.join(comparison.arm for comparison in worse)}."
    return said


def caution(results: Results, comparisons: Sequence[Comparison]) -> list[str]:
    """Return what a reader must know before believing a figure."""
    said = []
    if results.experiment.phase == "exploratory":
        said.append(
            "Exploratory: the design was still open when these seeds were looked at, so this is"
            " not evidence. It says what to confirm on other seeds."
        )
    if results.missing:
        said.append(f"Runs that are missing: {', '.join(results.missing)}.")
    if results.left_out:
        seeds = ", ".join(map(str, results.left_out))
        said.append(
            f"Left out of every figure but the outcomes by seed: {seeds}, because not every arm was"
            " run with them."
        )
    own = _of_own_reward(comparisons)
    least, arms = own[0].least_p if own else 0.0, len(results.experiment.arms) - 1
    if least * arms > LEVEL:
        after = f", and {say_p(min(1.0, least * arms))} after Holm over {arms} comparisons"
        said.append(
            f"With {seeds_of(len(results.paired))} p is at least {say_p(least)}"
            f"{after if arms > 1 else ''}: too few for anything to be below .05."
        )
    return said


def seeds_of(count: int) -> str:
    """Return how many paired seeds there are."""
    return f"{count} paired seed{'' if count == 1 else 's'}"


def _of_own_reward(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [each for each in comparisons if each.outcome == "own" and each.group is None]


def _figures(comparison: Comparison, *, of: int) -> str:
    """Return the gain, and how sure it is among all comparisons."""
    gain = say_gain(comparison.gain)
    interval = say_gain_interval(comparison.gain_low, comparison.gain_high)
    sure = f"95 % interval {interval}" if comparison.gain_low is not None else "no interval"
    p = f"{say_p_is(comparison.p_adjusted)}{' after Holm' if of > 1 else ''}"
    return f"{gain} ({sure}, {seeds_of(comparison.seeds)}, {p})"
