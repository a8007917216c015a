"""Compare ways of choosing training data on the demo model: `python -m bench.training_data`.

Every arm trains `tiny` from the same weights, and answers the same held-out questions half-way and
at the end. Each arm is run once for each of several keys, the seeds of all random numbers. The
first arms have one node; the last three have four nodes that share a pool in memory, and the score
of such an arm is the nodes' mean. There are no targets: the table helps to choose settings.
"""

import argparse
import hashlib
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from node_client.learning.questions.held_out import Evaluation, HeldOutSet
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.runtime.alone import practice_season
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import ExternalRollout, Rollout
from swarm_tasks.verifier import Verifier

POOL_SIZE = 256


@dataclass(frozen=True)
class Arm:
    """An arm: the settings of its nodes, and the number of nodes that train together."""

    config: TrainConfig
    nodes: int = 1


ALONE: Literal["isolated"] = "isolated"
ARMS = {
    "default": Arm(TrainConfig(arm=ALONE)),
    "resampling=history": Arm(TrainConfig(arm=ALONE, resampling="history")),
    "resampling=dynamic": Arm(TrainConfig(arm=ALONE, resampling="dynamic")),
    "curriculum=staged": Arm(TrainConfig(arm=ALONE, curriculum="staged")),
    "curriculum=ladder": Arm(TrainConfig(arm=ALONE, curriculum="ladder")),
    "4 nodes, mix=8/0": Arm(TrainConfig(mix="8/0"), nodes=4),
    "4 nodes, mix=4/4": Arm(TrainConfig(mix="4/4"), nodes=4),
    "4 nodes, mix=auto": Arm(TrainConfig(mix="auto"), nodes=4),
}


@dataclass(frozen=True)
class Result:
    """The result of one arm with one key; the figures are means over its nodes.

    `half_way` and `after` are pass@1 on the held-out set, half-way and at the end. `reward` is the
    training reward over all steps, and `generated` the number of rollouts that a node generated.
    """

    half_way: float
    after: float
    reward: float
    generated: int


# The latest rollouts of all nodes, each with its author.
Pool = deque[tuple[str, Rollout]]


class NodeExchange:
    """One node's access to the pool: it adds its rollouts, and draws random ones of other nodes."""

    def __init__(self, pool: Pool, *, node: str, key: bytes) -> None:
        self._pool = pool
        self._node = node
        self._rng = random.Random(key)

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Add the rollouts to the pool; `informative` is ignored."""
        self._pool.extend((self._node, rollout) for rollout in rollouts)

    def fetch(self, count: int) -> list[ExternalRollout]:
        """Return up to `count` random rollouts of other nodes, and leave them in the pool."""
        offered = [
            ExternalRollout(node=node, age_s=0.0, rollout=rollout)
            for node, rollout in self._pool
            if node != self._node
        ]
        return self._rng.sample(offered, min(count, len(offered)))


def measure(arm: Arm, *, key: int, steps: int, questions: int, verifier: Verifier) -> Result:
    """Train the nodes of an arm, `steps` steps each, and return the result.

    The nodes take turns, one step at a time. `questions` is the size of the held-out set.
    """
    pool = Pool(maxlen=POOL_SIZE)
    trainers = [_make_trainer(arm, pool, f"{key}-{n}", verifier) for n in range(arm.nodes)]
    held_out = HeldOutSet(verifier=verifier, season=practice_season(), size=questions)
    rewards: list[float] = []
    generated = 0
    half_way = 0.0
    for step in range(1, steps + 1):
        reports = [trainer.step() for trainer in trainers]
        rewards += [report.training_reward for report in reports]
        generated += sum(report.generated for report in reports)
        if step == steps // 2:
            half_way = fmean(_score(held_out, trainer.policy) for trainer in trainers)
    after = fmean(_score(held_out, trainer.policy) for trainer in trainers)
    return Result(half_way, after, fmean(rewards), generated // arm.nodes)


def _score(held_out: HeldOutSet, policy: Policy) -> float:
    evaluation = Evaluation(held_out, policy)
    while (found := evaluation.ask()) is None:
        pass
    return found.score


def _make_trainer(arm: Arm, pool: Pool, name: str, verifier: Verifier) -> Trainer:
    key = hashlib.sha256(name.encode()).digest()
    return Trainer(
        policy=Policy.load("tiny", device="cpu"),
        verifier=verifier,
        season=practice_season(),
        config=arm.config,
        exchange=NodeExchange(pool, node=name, key=key),
        node=name,
        key=key,
    )


def main() -> None:
    """Print a table with the means of each arm over its runs, and the final score of each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--questions", type=int, default=512)
    parser.add_argument("--arms", nargs="*", choices=list(ARMS), default=list(ARMS))
    asked = parser.parse_args()
    print("| arm | half-way | after | each key | training reward | generated |")  # noqa: T201
    with Verifier() as verifier:
        for name in asked.arms:
            results = [
                measure(
                    ARMS[name],
                    key=key,
                    steps=asked.steps,
                    questions=asked.questions,
                    verifier=verifier,
                )
                for key in range(asked.keys)
            ]
            print(_line(name, results), flush=True)  # noqa: T201


def _line(name: str, results: Sequence[Result]) -> str:
    each = ", ".join(f"{result.after:.3f}" for result in results)
    return (
        f"| `{name}` | {fmean(result.half_way for result in results):.3f}"
        f" | {fmean(result.after for result in results):.3f} | {each}"
        f" | {fmean(result.reward for result in results):.3f}"
        f" | {fmean(result.generated for result in results):.0f} |"
    )


if __name__ == "__main__":
    main()
