"""Strategies weight external rollouts, and the external places are drawn by these weights."""

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chisquare

from node_client.errors import SettingsError
from node_client.learning.external.sampling import STRATEGIES, SamplingStrategy, draw, make_strategy
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.trainer import Trainer
from node_client.settings.ranges import SAMPLINGS
from node_client.settings.train_config import TrainConfig
from node_client.storage import checkpoint
from swarm_protocol.messages import RolloutName
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    PoolInMemory,
    external_sum,
    group_of,
    make_trainer,
    toy_policy,
    toy_season,
)

HERE = __name__
MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")


class InTurns(SamplingStrategy):
    """Prefers the first candidate at first, after a step the second, and so on."""

    def __init__(self) -> None:
        self._turn = 0

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return [float(place == self._turn) for place in range(len(groups))]

    def update(self, own: Sequence[TrainingGroup], used: Sequence[TrainingGroup]) -> None:
        self._turn += 1

    def state(self) -> dict[str, Any]:
        return {"turn": self._turn}

    def load(self, state: dict[str, Any]) -> None:
        self._turn = state["turn"]


class Given(SamplingStrategy):
    """Fixed weights, so that thousands of draws are cheap."""

    def __init__(self, weights: list[float]) -> None:
        self._weights = weights

    def weigh(self, groups: Sequence[TrainingGroup]) -> list[float]:
        return self._weights


def group_with(
    right: int = 1, *, of: int = 8, node: str = "a", age: float = 0, **fields: Any
) -> TrainingGroup:
    """Return a group whose first `right` completions of `of` are right."""
    rewards = [1.0] * right + [0.0] * (of - right)
    source = RolloutName(node, "r")
    return group_of(*rewards, prompt=[right], source=source, age_s=age, **fields)


def weights_by(name: str, groups: Sequence[TrainingGroup]) -> list[float]:
    return make_strategy(name).weigh(groups)


def drawn_places(
    weights: list[float], *, wanted: int, times: int = 20_000
) -> Counter[tuple[int, ...]]:
    """Return how often each sequence of places was drawn."""
    groups = [group_of(0, prompt=[place]) for place in range(len(weights))]
    strategy, rng = Given(weights), random.Random(14)
    return Counter(
        tuple(group.prompt[0] for group in draw(groups, strategy=strategy, wanted=wanted, rng=rng))
        for _ in range(times)
    )


@pytest.mark.slow
def test_places_are_drawn_one_by_one_in_proportion_to_the_remaining_weights() -> None:
    weights = weights_by("advantage", [group_with(right) for right in (1, 2, 4, 7)])
    drawn = drawn_places(weights, wanted=2)
    whole = sum(weights)
    chances = {
        (first, second): weights[first] / whole * weights[second] / (whole - weights[first])
        for first in range(4)
        for second in range(4)
        if first != second
    }
    observed = [drawn[pair] for pair in chances]
    expected = [drawn.total() * chance for chance in chances.values()]
    assert chisquare(observed, expected).pvalue > 0.01


@pytest.mark.slow
def test_sender_of_94_in_100_candidates_is_drawn_as_often_as_each_other_one() -> None:
    nodes = ["flood"] * 94 + [f"node-{number}" for number in range(6)]
    drawn = drawn_places(weights_by("by-node", [group_with(node=node) for node in nodes]), wanted=1)
    by_node: Counter[str] = Counter()
    for (place,), times in drawn.items():
        by_node[nodes[place]] += times
    assert chisquare([by_node[node] for node in set(nodes)]).pvalue > 0.01


def test_groups_without_weight_are_drawn_last() -> None:
    (first, *_) = draw(
        [group_with(0), group_with(8), group_with(7)],
        strategy=make_strategy("advantage"),
        wanted=3,
        rng=random.Random(0),
    )
    assert first.prompt == [7]


def test_draw_returns_no_more_than_wanted_and_no_duplicates() -> None:
    groups = [group_with(right) for right in range(1, 8)]
    drawn = draw(groups, strategy=make_strategy("uniform"), wanted=4, rng=random.Random(0))
    assert len({group.prompt[0] for group in drawn}) == len(drawn) == 4


def test_draw_from_no_candidates_is_empty() -> None:
    for name in ("uniform", "advantage", "fresh+by-node"):
        strategy = make_strategy(name)
        assert draw([], strategy=strategy, wanted=2, rng=random.Random(0)) == []


def test_setting_names_every_strategy() -> None:
    assert set(STRATEGIES) == set(SAMPLINGS)


def test_uniform_weights_are_equal() -> None:
    assert weights_by("uniform", [group_with(1), group_with(7)]) == [1, 1]


def test_weight_by_advantage_is_the_largest_of_the_group() -> None:
    # One of eight right: mean 1/8, variance 1/8 (of a sample), so (7/8) / sqrt(1/8).
    deviation = math.sqrt(1 / 8)
    weights = weights_by("advantage", [group_with(1), group_with(7), group_with(0)])
    assert weights == pytest.approx([7 / 8 / deviation, 1 / 8 / deviation, 0], rel=1e-3)


def test_weight_by_reward_is_the_mean() -> None:
    assert weights_by("reward", [group_with(2), group_with(6)]) == [0.25, 0.75]


def test_weight_by_node_is_shared_by_all_groups_of_a_sender() -> None:
    groups = [group_with(node=node) for node in ("a", "b", "a", "a")]
    assert weights_by("by-node", groups) == pytest.approx([1 / 3, 1, 1 / 3, 1 / 3])


def test_weight_by_task_is_shared_by_all_groups_of_a_dataset() -> None:
    groups = [group_with(dataset=dataset) for dataset in ("gcd", "gcd", "chain_sum")]
    assert weights_by("by-task", groups) == [0.5, 0.5, 1]


def test_fresh_halves_the_weight_with_each_higher_age() -> None:
    groups = [group_with(age=age) for age in (5, 1, 9, 1)]
    assert weights_by("fresh", groups) == [0.5, 1, 0.25, 1]


def test_variance_uses_the_solved_share_of_this_node() -> None:
    strategy = make_strategy("variance")
    for _ in range(2):
        strategy.update([group_with(4, dataset="gcd")], [group_with(8, dataset="chain_sum")])
    solved = 0.03 * 0.5 * (1 + 0.97)
    weights = strategy.weigh([group_with(dataset="gcd"), group_with(dataset="chain_sum")])
    assert weights == pytest.approx([solved * (1 - solved), 0.01 * 0.99])


def test_novel_is_the_share_of_right_completions_that_are_new() -> None:
    strategy = make_strategy("novel")
    strategy.update(
        [group_with(1, of=2, completions=[[5, 6], [7]])],
        [group_with(1, of=2, completions=[[8], [9]])],
    )
    candidates = [
        group_with(2, of=3, completions=[[5, 6], [4], [4]]),  # one known, one new
        group_with(2, of=3, completions=[[5, 6], [8], [4]]),  # both known
        group_with(1, of=3, completions=[[7], [5, 6], [8]]),  # new: it was wrong before
        group_with(0, of=2, completions=[[4], [4]]),
    ]
    assert strategy.weigh(candidates) == [0.5, 0.001, 1, 0.001]


def test_confidence_is_the_probability_of_yes_over_no_for_right_completions() -> None:
    policy = toy_policy()
    strategy = make_strategy("confidence")
    strategy.begin(policy)
    group = group_with(1, of=2, completions=[[5, 6], [7]])
    requested = policy.completion_ids("\nIs this answer right? Say yes or no: ", "length")
    words = [policy.completion_ids(word, "length") for word in ("yes", "no")]
    assert requested is not None
    logprobs, _ = policy.logprobs([[1, 5, 6, *requested]] * 2, [word or [] for word in words])
    yes, no = logprobs.sum(dim=1).exp().tolist()
    assert strategy.weigh([group]) == pytest.approx([yes / (yes + no)], rel=1e-4)


def test_weights_of_joined_strategies_are_multiplied() -> None:
    groups = [group_with(2, dataset="gcd"), group_with(6, dataset="gcd"), group_with(4)]
    assert weights_by("reward+by-task", groups) == [0.125, 0.375, 0.5]


@pytest.mark.parametrize("name", ["variance", "novel", "novel+variance"])
def test_saved_strategy_continues_where_it_was(name: str) -> None:
    before, after, fresh = (make_strategy(name) for _ in range(3))
    before.update([group_with(6)], [group_with(1, of=2, completions=[[5], [6]])])
    after.load(json.loads(json.dumps(before.state())))
    candidates = [
        group_with(1, of=2, completions=[[5], [6]]),
        group_with(1, of=2, completions=[[7], [6]], dataset="gcd"),
    ]
    assert after.weigh(candidates) == before.weigh(candidates)
    assert fresh.weigh(candidates) != before.weigh(candidates)


@pytest.mark.parametrize("name", ["nearest", "uniform+nearest"])
def test_unknown_strategy_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="external_sampling cannot be nearest"):
        make_strategy(name)


def test_custom_class_is_named_by_its_module() -> None:
    groups = [group_with(2), group_with(6)]
    assert weights_by(f"{HERE}:InTurns", groups) == [1, 0]
    assert weights_by(f"reward+{HERE}:InTurns", groups) == [0.25, 0]


def offers(verifier: Verifier, step: int, *, count: int = 4) -> PoolInMemory:
    """Return the pool of a step: usable rollouts that no other step gets."""
    return PoolInMemory(
        [external_sum(verifier, MIXED, counter=count * step + place) for place in range(count)]
    )


def trainer_with_candidates(verifier: Verifier, sampling: str) -> Trainer:
    return make_trainer(
        verifier,
        season=toy_season(local=2, external=1),
        config=TrainConfig(external_sampling=sampling),
        exchange=offers(verifier, 0),
    )


@pytest.mark.parametrize(("external", "requested"), [(0, 0), (4, 24), (40, 40)])
def test_step_requests_24_candidates_but_at_least_as_many_as_places(
    verifier: Verifier, external: int, requested: int
) -> None:
    season = toy_season(local=2, external=external)
    trainer = make_trainer(verifier, season=season, exchange=offers(verifier, 0))
    assert trainer.candidates == requested


def test_weighted_sampling_scores_all_candidates_and_uses_as_many_as_places(
    verifier: Verifier,
) -> None:
    uniform = trainer_with_candidates(verifier, "uniform")
    by_advantage = trainer_with_candidates(verifier, "advantage")
    assert uniform.step().external_used == 1
    report = by_advantage.step()
    assert (report.external_used, report.external_dropped) == (1, {"not_drawn": 3})
    assert len(uniform.state_dict()["seen"]) == 1
    assert len(by_advantage.state_dict()["seen"]) == 4


def used_in(trainer: Trainer, verifier: Verifier, *, steps: Sequence[int]) -> list[str]:
    """Return the ids of the external rollouts that a trainer uses in these steps, one in each."""
    used = []
    for step in steps:
        trainer._exchange = offers(verifier, step)
        used += [name.id for name in trainer.step().used]
    return used


def test_resumed_run_draws_like_an_uninterrupted_one(verifier: Verifier, tmp_path: Path) -> None:
    whole, resumed = (trainer_with_candidates(verifier, f"{HERE}:InTurns") for _ in range(2))
    assert used_in(whole, verifier, steps=[0, 1]) == ["rollout-elsewhere-0", "rollout-elsewhere-5"]
    checkpoint.save(tmp_path, whole)
    checkpoint.resume(tmp_path, resumed)
    assert used_in(resumed, verifier, steps=[2, 3]) == [
        "rollout-elsewhere-10",
        "rollout-elsewhere-15",
    ]


@pytest.mark.parametrize("sampling", ["novel", f"{HERE}:InTurns"])
def test_checkpoint_from_before_strategies_starts_a_new_one(
    verifier: Verifier, sampling: str
) -> None:
    before, after = (trainer_with_candidates(verifier, sampling) for _ in range(2))
    before.step()
    state = before.state_dict()
    del state["external_sampling"], state["sharing"]
    after.load_state(state)
    assert used_in(after, verifier, steps=[1]) == used_in(
        trainer_with_candidates(verifier, sampling), verifier, steps=[1]
    )
