"""Sentences about an experiment's results and limits, made from its numbers."""

from collections.abc import Iterator, Sequence

from node_client.lab.config import NodePlan
from node_client.lab.report.numbers import format_gain, format_gain_interval, format_p, format_p_is
from node_client.lab.report.shape import ArmComparison, PaperArm
from node_client.lab.results import ExperimentResults
from node_client.lab.statistics import LEVEL
from node_client.settings.train_config import plan_step

# Total reward over eight nodes of Qwen2.5-0.5B and 2,000 rounds, in one run of each arm.
PAPER = [
    PaperArm("8/0", 561.79, 1.0),
    PaperArm("6/2", 854.43, 1.52),
    PaperArm("4/4", 1093.31, 1.94),
    PaperArm("2/6", 945.87, 1.68),
]
_NODES = 8
_BASE = "Qwen2.5-0.5B"
_ROUNDS = 2_000
_DATASETS = 9
_COMPLETIONS = 8


def headline(comparisons: Sequence[ArmComparison], *, baseline: str, arms: int) -> str:
    """Return sentences that state which arms gained in cumulative own reward.

    The p-values of `comparisons` must be adjusted already. `arms` is the number of arms to compare
    with the baseline, including arms without runs yet.
    """
    own = list(gains_in_own_reward(comparisons).values())
    if not own:
        return f"Only the baseline {baseline} has been run, so there is nothing to compare."
    best = max(own, key=lambda comparison: comparison.difference)
    better = [each for each in own if each.p_adjusted <= LEVEL and each.difference > 0]
    worse = [each for each in own if each.p_adjusted <= LEVEL and each.difference < 0]
    figures = _figures(best, of=arms)
    what = f"over {baseline} in cumulative own reward"
    if best in better:
        text = f"{best.arm} gained {'most ' if len(own) > 1 else ''}{what}: {figures}."
    elif best.difference > 0 and best.least_p * arms > LEVEL:
        text = f"Too few seeds to show a gain of {best.arm} {what}: {figures}."
    elif best.difference > 0:
        text = f"No gain {what} beyond chance; the largest is {best.arm}'s: {figures}."
    else:
        text = f"No gain {what}; the smallest loss is {best.arm}'s: {figures}."
    if len(own) > 1 and better:
        text += f" {len(better)} of {len(own)} arms are better than the baseline beyond chance."
    if worse:
        text += f" Worse beyond chance: {', '.join(comparison.arm for comparison in worse)}."
    return text


def caution(results: ExperimentResults, comparisons: Sequence[ArmComparison]) -> list[str]:
    """Return warnings: exploratory seeds, missing runs, seeds left out, and too few seeds."""
    sentences = []
    if results.experiment.phase == "exploratory":
        sentences.append(
            "Exploratory: the design was still open when these seeds were looked at, so this is"
            " not evidence. It says what to confirm on other seeds."
        )
    if results.missing:
        sentences.append(f"Runs that are missing: {', '.join(results.missing)}.")
    if results.left_out:
        seeds = ", ".join(map(str, results.left_out))
        sentences.append(
            f"Left out of every figure but the outcomes by seed: {seeds}, because not every arm was"
            " run with them."
        )
    own = list(gains_in_own_reward(comparisons).values())
    min_p, arms = own[0].least_p if own else 0.0, len(results.experiment.arms) - 1
    if min_p * arms > LEVEL:
        after = f", and {format_p(min(1.0, min_p * arms))} after Holm over {arms} comparisons"
        sentences.append(
            f"With {format_seeds(len(results.paired))} p is at least {format_p(min_p)}"
            f"{after if arms > 1 else ''}: too few for anything to be below .05."
        )
    return sentences


def format_seeds(count: int) -> str:
    """Return a number of paired seeds as text, such as "3 paired seeds"."""
    return f"{count} paired seed{'' if count == 1 else 's'}"


def gains_in_own_reward(comparisons: Sequence[ArmComparison]) -> dict[str, ArmComparison]:
    """Return the comparison of each whole arm in cumulative own reward, by the arm's name."""
    return {each.arm: each for each in comparisons if each.outcome == "own" and each.group is None}


def _figures(comparison: ArmComparison, *, of: int) -> str:
    """Return the gain with its interval and p-value, as text.

    `of` is the number of comparisons for which the p-value was adjusted.
    """
    gain = format_gain(comparison.gain)
    interval = format_gain_interval(comparison.gain_low, comparison.gain_high)
    sure = f"95 % interval {interval}" if comparison.gain_low is not None else "no interval"
    p = f"{format_p_is(comparison.p_adjusted)}{' after Holm' if of > 1 else ''}"
    return f"{gain} ({sure}, {format_seeds(comparison.seeds)}, {p})"


def unlike_the_paper(results: ExperimentResults) -> list[str]:
    """Return sentences about how the set-up differs from that of the SAPO paper's experiment."""
    sentences = [
        *_unlike_in_size(results),
        f"{format_seeds(len(results.paired))}, in place of one run of each arm.",
        "Own reward leaves others' rollouts out. Whose rewards the paper adds up is not stated;"
        " its public code counts external rollouts too.",
        "Sums are of the mean over nodes; the paper's are over all 8 nodes, so 8 times as large.",
    ]
    if any(_generates_more(data.plans) for data in results.arms):
        sentences.append(
            "Some arms generate more rollouts in a round than their I (the setting batch; I + J"
            " unless it is set); the paper's generate I."
        )
    return sentences


def _unlike_in_size(results: ExperimentResults) -> Iterator[str]:
    season, plans = results.experiment.season, results.baseline.plans
    bases = " and ".join(dict.fromkeys(plan.base for plan in plans))
    if len(plans) != _NODES or _BASE not in bases:
        yield f"{len(plans)} nodes of {bases} instead of {_NODES} of {_BASE}."
    if results.experiment.rounds != _ROUNDS:
        yield f"{results.experiment.rounds:,} rounds, in place of {_ROUNDS:,}."
    datasets = [task.dataset for task in season.tasks]
    if len(datasets) != _DATASETS:
        yield f"Questions of {', '.join(datasets)}, in place of nine datasets."
    if season.completions != _COMPLETIONS:
        yield f"{season.completions} completions of each question, in place of {_COMPLETIONS}."


def _generates_more(plans: Sequence[NodePlan]) -> bool:
    """Return whether a node of the arm generates more than I rollouts in a step."""
    steps = [plan_step(plan.config, plan.season) for plan in plans]
    return any(step.batch > step.local for step in steps)
