"""The outcomes of one run: own reward, held-out score and the training set's reward.

They measure different things and must not be pooled or confused. Own reward is the mean over a
node's own completions, before the update. The held-out score is pass@1 on questions that no node
trains on. The training set's reward includes external rollouts, which are chosen for correct
answers, so it favours arms that use them. SAPO (arXiv 2509.08721) does not say which of the two
rewards it reports.
"""

from dataclasses import dataclass

import numpy as np

from node_client.lab.onset import WINDOW, moving_average, place_for_good
from node_client.lab.results import RunData
from node_client.lab.statistics import Floats

# Number of evaluations in the moving average of a held-out curve, for peaks and falls.
HELD_OUT_WINDOW = 3


@dataclass(frozen=True)
class HeldOut:
    """Scores of a run on the held-out questions.

    `area` and `final` are (nodes,), in [0, 1]. `area` is the area under a node's curve of scores,
    divided by the number of rounds that the curve spans; `final` is a node's last score.

    `forgetting`, `drawdown` and `wobble` describe the mean curve of all nodes. Sampling noise alone
    makes them positive. `wobble` is the standard deviation of the curve's changes from one
    evaluation to the next, divided by the curve's mean. The other two describe a moving average of
    the curve over three evaluations: `forgetting` is its peak minus its end, and `drawdown` its
    largest fall from the highest value so far, as a share of that value.
    """

    area: Floats
    final: Floats
    forgetting: float
    drawdown: float
    wobble: float


def cumulative_rewards(rewards: Floats) -> Floats:
    """Return each node's sum of rewards over rounds, (nodes,); `rewards` is (rounds, nodes)."""
    return np.asarray(rewards.sum(axis=0))


def measure_held_out(run: RunData) -> HeldOut | None:
    """Return the held-out scores; None with fewer than two evaluations."""
    if len(run.held_out_rounds) < 2:
        return None
    rounds = np.array(run.held_out_rounds, dtype=np.float64)
    area = np.trapezoid(run.held_out, rounds, axis=0) / (rounds[-1] - rounds[0])
    level = run.held_out.mean(axis=1)
    smooth = moving_average(level, HELD_OUT_WINDOW)
    return HeldOut(
        area=np.asarray(area),
        final=run.held_out[-1],
        forgetting=float(smooth.max() - smooth[-1]),
        drawdown=drawdown(smooth),
        wobble=wobble(level),
    )


def drawdown(level: Floats) -> float:
    """Return a curve's largest fall from its highest value so far, as a share of that value.

    Returns 0 if the curve never falls.
    """
    highest = np.maximum.accumulate(level)
    return float(np.max((highest - level) / np.where(highest > 0, highest, 1.0)))


def wobble(level: Floats) -> float:
    """Return the standard deviation of a curve's changes between points, divided by its mean.

    Returns 0 unless the mean is positive.
    """
    mean = float(level.mean())
    return float(np.std(np.diff(level)) / mean) if mean > 0 else 0.0


def take_off(rewards: Floats, *, above: float) -> int | None:
    """Return the first round from which a moving average of the rewards stays greater than `above`.

    `rewards` is (rounds, nodes), and rounds count from 1. The average in a round is over all nodes,
    and over this round and the nine rounds before it. The result is therefore at least 10. With
    fewer than ten rounds, there is only the average over all rounds, which counts as that of the
    last round. Returns None if the average in the last round is not greater than `above`.
    """
    level = moving_average(rewards.mean(axis=1))
    place = place_for_good(level > above)
    return None if place is None else place + len(rewards) - len(level) + 1


def held_out_level(run: RunData) -> Floats:
    """Return the nodes' mean held-out score as a moving average over three evaluations.

    The first value belongs to the third of `run.held_out_rounds`. With fewer than three evaluations
    there is one value, the average over all evaluations.
    """
    return moving_average(run.held_out.mean(axis=1), HELD_OUT_WINDOW)


def first_round_above(run: RunData, level: float) -> int | None:
    """Return the round from which the run's `held_out_level` stays at or above `level`.

    Returns None if `held_out_level` is below `level` in the last evaluation.
    """
    curve = held_out_level(run)
    place = place_for_good(curve >= level)
    return None if place is None else run.held_out_rounds[place - len(curve)]


def final_level(rewards: Floats) -> float:
    """Return the mean of rewards (rounds, nodes) over the nodes and the last ten rounds."""
    return float(rewards[-WINDOW:].mean())


def spread(values: Floats) -> float:
    """Return the standard deviation of values, one for each node; 0 for a single node."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
