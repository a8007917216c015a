"""Simulated trials of sharing: nodes in randomly assigned arms learn and are judged."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judge.statistics.comparison import MIN_NODES_PER_ARM, MIN_ROUNDS, ModelTrial, plan_looks

BLOCK_SIZES = (4, 6, 8)
# The share of questions that an untrained model solves, and what training can add to it.
UNTRAINED, TO_LEARN = 0.05, 0.4
# Rounds after which a node of speed 1 has learned 63 % (1 - 1/e) of what it can.
LEARNING_ROUNDS = 100
# The standard deviation of the rounds' ease, which is added to all chances to solve.
ROUNDS_DIFFER = 0.03

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Plan:
    """The parameters of a simulated trial.

    The logarithms of the nodes' learning speeds have the standard deviation `spread`, and swarm
    nodes learn `gain` times as fast. Each node has the probability `late` of joining at a random
    round of the first half instead of at the start, `leaving` of leaving at a random round of the
    second half, `known` of having taken part in an earlier season, and `missing` of missing any
    single round. In each trial, one draw from a normal distribution with the standard deviation
    `hit` is added to all scores of swarm nodes.
    """

    nodes: int = 10
    rounds: int = 200
    questions: int = 32
    spread: float = 0.4
    gain: float = 1.0
    late: float = 0.0
    leaving: float = 0.0
    missing: float = 0.0
    known: float = 0.0
    hit: float = 0.0


def simulate_trial(rng: np.random.Generator, plan: Plan) -> ModelTrial:
    """Simulate a trial of one model, and return the nodes' results up to each look."""
    blocks, places = assign_arms(rng, plan.nodes)
    swarm = np.array([blocks[block][place] for block, place in places])
    speed = np.exp(rng.normal(0, plan.spread, plan.nodes))
    came = np.where(
        rng.random(plan.nodes) < plan.late, rng.integers(0, plan.rounds // 2, plan.nodes), 0
    )
    scores = _judge(rng, plan, speed=np.where(swarm, plan.gain, 1.0) * speed, came=came)
    scores += np.where(swarm, rng.normal(0, plan.hit), 0.0)[:, None]
    _remove_missed(rng, plan, scores)
    before = _judge(rng, plan, speed=speed, came=np.zeros(plan.nodes, dtype=np.int64))
    earlier = (before - before.mean(axis=0)).mean(axis=1)
    is_known = rng.random(plan.nodes) < plan.known
    return _sum_up(
        scores,
        looks=plan_looks(plan.rounds),
        places=places,
        blocks=blocks,
        covariates=np.column_stack([came, np.where(is_known, earlier, 0)]).astype(np.float64),
    )


def assign_arms(
    rng: np.random.Generator, nodes: int
) -> tuple[dict[int, list[bool]], list[tuple[int, int]]]:
    """Assign nodes to arms in random blocks, as the site's coin flip does.

    Returns the blocks and the nodes' places. The blocks map each block's number, from 1, to the
    arms of its places, true for swarm. A node's place is the pair (block, place in the block).
    """
    blocks: dict[int, list[bool]] = {}
    places: list[tuple[int, int]] = []
    while len(places) < nodes:
        size = int(rng.choice(BLOCK_SIZES))
        number = len(blocks) + 1
        blocks[number] = [bool(arm) for arm in rng.permutation(np.arange(size) < size // 2)]
        places += [(number, place) for place in range(size)]
    return blocks, places[:nodes]


def _judge(
    rng: np.random.Generator, plan: Plan, *, speed: Floats, came: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return scores (nodes, rounds) from 0 to 1; NaN in rounds before a node joined.

    `came` (nodes,) is each node's first round, counted from 0.
    """
    time = np.arange(plan.rounds) - came[:, None]
    learned = 1 - np.exp(-speed[:, None] * np.maximum(time, 0) / LEARNING_ROUNDS)
    ease = rng.normal(0, ROUNDS_DIFFER, plan.rounds)
    chances = np.clip(UNTRAINED + TO_LEARN * learned + ease, 0, 1)
    solved = rng.binomial(plan.questions, chances) / plan.questions
    return np.where(time < 0, np.nan, solved)


def _remove_missed(rng: np.random.Generator, plan: Plan, scores: npt.NDArray[np.float64]) -> None:
    """Set the scores of missed rounds, and of rounds after a node has left, to NaN, in place."""
    nodes, rounds = scores.shape
    scores[rng.random(scores.shape) < plan.missing] = np.nan
    leaves = np.where(
        rng.random(nodes) < plan.leaving, rng.integers(rounds // 2, rounds, nodes), rounds
    )
    scores[np.arange(rounds) >= leaves[:, None]] = np.nan


def _sum_up(
    scores: npt.NDArray[np.float64],
    *,
    looks: list[int],
    places: list[tuple[int, int]],
    blocks: dict[int, list[bool]],
    covariates: npt.NDArray[np.float64],
) -> ModelTrial:
    there = ~np.isnan(scores)
    level = np.nansum(scores, axis=0) / np.maximum(1, there.sum(axis=0))
    deviations = np.where(there, scores - level, 0)
    at = np.array(looks) - 1
    rounds = there.cumsum(axis=1)[:, at].T
    sums = deviations.cumsum(axis=1)[:, at].T
    means = np.divide(sums, rounds, out=np.full_like(sums, np.nan), where=rounds > 0)
    squares = (deviations**2).sum(axis=1) - rounds[-1] * np.nan_to_num(means[-1]) ** 2
    return ModelTrial(
        places=places,
        blocks=blocks,
        deviations=means,
        rounds=rounds,
        covariates=covariates,
        noise=np.maximum(0, squares) / np.maximum(1, rounds[-1] - 1),
    )


def claims_of_one_look_test(trial: ModelTrial) -> tuple[bool, bool]:
    """Return whether a permutation test finds a difference at any look, and at the last look.

    The test is valid for a single look, but made here at each look. It shuffles the arms of the
    nodes without regard to blocks and compares the means, at the level 0.05 without adjustment. It
    uses nodes with at least MIN_ROUNDS rounds, and finds nothing if an arm has fewer than
    MIN_NODES_PER_ARM such nodes.
    """
    found = []
    for deviations, rounds in zip(trial.deviations, trial.rounds, strict=True):
        counts = rounds >= MIN_ROUNDS
        values, swarm = deviations[counts], trial.swarm[counts]
        if min(swarm.sum(), (~swarm).sum()) < MIN_NODES_PER_ARM:
            found.append(False)
            continue
        labels = np.random.default_rng(0).permuted(np.tile(swarm, (999, 1)), axis=1)
        gaps = _gaps(np.vstack([swarm, labels]), values)
        found.append(bool((gaps >= gaps[0] - 1e-9).mean() <= 0.05))
    return any(found), found[-1]


def _gaps(labels: npt.NDArray[np.bool_], values: Floats) -> Floats:
    ahead = labels @ values / labels.sum(axis=1)
    behind = ~labels @ values / (~labels).sum(axis=1)
    gaps: Floats = np.abs(ahead - behind)
    return gaps
