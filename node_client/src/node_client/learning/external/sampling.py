"""Strategies that choose rollouts: external ones to train on, or own ones to share.

The settings `external_sampling` and `sharing` name them. A strategy gives each rollout a weight.
Rollouts are drawn one after another, without replacement, each time with chances in proportion to
the weights. SAPO (arXiv 2509.08721, section 4) uses `uniform`. Names can be combined:
`advantage+by-task` multiplies two weights. `package.module:Class` names a custom strategy;
`docs/lab.md` shows how to write and test one.
"""

import math
import random
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from node_client.learning.plugins import make_plugin
from node_client.learning.rewards import confidences
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.update.losses import group_advantages
from node_client.model.policy import Policy

# The number of right completions that `novel` remembers.
REMEMBERED_TEXTS = 4096
# The weight of the newest rollout in a moving average over about 30 rollouts.
NEWEST = 0.03


class SamplingStrategy(ABC):
    """Base class for strategies that decide how likely each rollout is to be drawn.

    A custom strategy overrides `weigh`, and the other methods if it needs them.
    """

    def begin(self, policy: Policy) -> None:  # noqa: B027
        """Receive the trained policy, before the first call of `weigh`."""

    @abstractmethod
    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        """Return a weight of at least 0 for each rollout; rollouts of weight 0 are drawn last."""

    def update(self, own: Sequence[TrainingGroup], used: Sequence[TrainingGroup]) -> None:  # noqa: B027
        """Learn from a step's own rollouts and from the external rollouts that were trained on."""

    def state(self) -> dict[str, Any]:
        """Return what `load` needs after a restart, as plain values."""
        return {}

    def load(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Continue from a saved `state`."""


class Uniform(SamplingStrategy):
    """Strategy that gives all rollouts equal weights."""

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return [1.0] * len(groups)


class Advantage(SamplingStrategy):
    """Strategy that weights a rollout by its largest advantage.

    With rewards of 0 and 1 and a share p > 0 of right completions, the weight is in proportion to
    sqrt((1 - p) / p): the fewer are right, the larger it is. If none is right, the weight is 0.
    """

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        advantages = group_advantages([group.rewards for group in groups], scale_rewards="group")
        return [max(0.0, *of_group) for of_group in advantages]


class RewardGuided(SamplingStrategy):
    """Strategy that weights a rollout by its mean reward.

    SAPO's public code instead takes the rollouts with the highest total rewards.
    """

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return [fmean(group.rewards) for group in groups]


class ByNode(SamplingStrategy):
    """Strategy that gives each sender the same total weight, however many rollouts it shared."""

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return _balance([None if group.source is None else group.source.node for group in groups])


class ByTask(SamplingStrategy):
    """Strategy that gives each dataset the same total weight, however many rollouts it has."""

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return _balance([group.dataset for group in groups])


class Fresh(SamplingStrategy):
    """Strategy that prefers recent rollouts: the lowest age has weight 1, the next 1/2, 1/4, ..."""

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        ages = sorted({group.age_s for group in groups})
        return [0.5 ** min(ages.index(group.age_s), 1000) for group in groups]


class Variance(SamplingStrategy):
    """Strategy that weights a rollout by p (1 - p), where p is this node's own average reward.

    p is the moving average of the rewards of own rollouts of the same dataset. It starts at 0 and
    is clamped to [0.01, 0.99]. The expected improvement of the policy has a lower bound in
    proportion to p (1 - p) (arXiv 2504.03380).
    """

    def __init__(self) -> None:
        self._solved: dict[str, float] = {}

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        probabilities = [
            min(max(self._solved.get(group.dataset, 0.0), 0.01), 0.99) for group in groups
        ]
        return [probability * (1 - probability) for probability in probabilities]

    def update(self, own: Sequence[TrainingGroup], used: Sequence[TrainingGroup]) -> None:
        for group in own:
            before = self._solved.get(group.dataset, 0.0)
            self._solved[group.dataset] = before + NEWEST * (fmean(group.rewards) - before)

    def state(self) -> dict[str, Any]:
        return {"solved": dict(self._solved)}

    def load(self, state: dict[str, Any]) -> None:
        self._solved = dict(state.get("solved", {}))


class Novel(SamplingStrategy):
    """Strategy that weights a rollout by the share of its right completions that are new.

    A completion is new if it is not among the latest REMEMBERED_TEXTS right completions of this
    node's own rollouts and of external ones that it trained on. Right completions are those with
    the rollout's highest reward, if that is above 0. The weight is at least 0.001.
    """

    def __init__(self) -> None:
        self._known: deque[str] = deque(maxlen=REMEMBERED_TEXTS)

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        known = set(self._known)
        shares = []
        for group in groups:
            right = _right_completions(group)
            new = sum(completion not in known for completion in right)
            shares.append(max(new / len(right), 0.001) if right else 0.001)
        return shares

    def update(self, own: Sequence[TrainingGroup], used: Sequence[TrainingGroup]) -> None:
        for group in (*own, *used):
            self._known.extend(_right_completions(group))

    def state(self) -> dict[str, Any]:
        return {"known": list(self._known)}

    def load(self, state: dict[str, Any]) -> None:
        self._known.extend(state.get("known", []))


class Confidence(SamplingStrategy):
    """Strategy that weights a rollout by the policy's mean confidence in its best completions.

    The best completions are those with the highest reward. The confidence is the policy's
    probability that a completion is right (`rewards.confidences`). SAPO suggests such a sampling
    signal, from a generative verifier, as future work.
    """

    def begin(self, policy: Policy) -> None:
        self._policy = policy

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return [
            fmean(confidences(self._policy, group.prompt, _best_completions(group)))
            for group in groups
        ]


class Combined(SamplingStrategy):
    """Strategy that weights a rollout by the product of several strategies' weights."""

    def __init__(self, strategies: dict[str, SamplingStrategy]) -> None:
        self._strategies = strategies

    def begin(self, policy: Policy) -> None:
        for strategy in self._strategies.values():
            strategy.begin(policy)

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        weights = [strategy.weigh(groups) for strategy in self._strategies.values()]
        return [math.prod(of_group) for of_group in zip(*weights, strict=True)]

    def update(self, own: Sequence[TrainingGroup], used: Sequence[TrainingGroup]) -> None:
        for strategy in self._strategies.values():
            strategy.update(own, used)

    def state(self) -> dict[str, Any]:
        return {name: strategy.state() for name, strategy in self._strategies.items()}

    def load(self, state: dict[str, Any]) -> None:
        for name, strategy in self._strategies.items():
            if name in state:
                strategy.load(state[name])


STRATEGIES: dict[str, type[SamplingStrategy]] = {
    "uniform": Uniform,
    "advantage": Advantage,
    "reward": RewardGuided,
    "by-node": ByNode,
    "by-task": ByTask,
    "fresh": Fresh,
    "variance": Variance,
    "novel": Novel,
    "confidence": Confidence,
}


def make_strategy(name: str, *, setting: str = "external_sampling") -> SamplingStrategy:
    """Return the strategy that `name` stands for.

    `name` is one name, or several joined by `+`. With several, the weight of a rollout is the
    product of the weights that the strategies give it. `setting` is the setting whose value is
    `name`; error messages contain this setting. Raises SettingsError as `make_plugin` does.
    """
    return Combined(
        {
            part: make_plugin(part, known=STRATEGIES, base=SamplingStrategy, setting=setting)  # type: ignore[type-abstract]
            for part in name.split("+")
        }
    )


def draw(
    groups: Sequence[TrainingGroup],
    *,
    strategy: SamplingStrategy,
    wanted: int,
    rng: random.Random,
) -> list[TrainingGroup]:
    """Draw up to `wanted` groups without replacement, with chances in proportion to their weights.

    The method is exponential keys (Efraimidis and Spirakis, Information Processing Letters 97,
    2006).
    """
    keys = [
        math.log(1 - rng.random()) / weight if weight > 0 else -math.inf
        for weight in strategy.weigh(groups)
    ]
    order = sorted(range(len(groups)), key=keys.__getitem__, reverse=True)
    return [groups[place] for place in order[:wanted]]


def _balance(owners: Sequence[str | None]) -> list[float]:
    counts = Counter(owners)
    return [1 / counts[owner] for owner in owners]


def _best_completions(group: TrainingGroup) -> list[list[int]]:
    best = max(group.rewards)
    return [
        completion
        for completion, reward in zip(group.completions, group.rewards, strict=True)
        if reward == best
    ]


def _right_completions(group: TrainingGroup) -> list[str]:
    """Return the completions with the highest reward, each as a string of its token ids.

    The list is empty if the highest reward is 0.
    """
    if max(group.rewards) <= 0:
        return []
    return [" ".join(map(str, completion)) for completion in _best_completions(group)]
