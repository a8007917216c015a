"""External places are filled by advantage, where that is asked for."""

import random

from node_client.learning.rollouts import TrainingGroup
from node_client.learning.trainer import Trainer
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer, toy_season


def group_with(right: int, *, of: int = 8) -> TrainingGroup:
    rewards = [1.0] * right + [0.0] * (of - right)
    return TrainingGroup([right], [[1]] * of, rewards, [False] * of)


def test_groups_with_few_right_completions_are_drawn_likelier() -> None:
    chance = random.Random(0)
    drawn = [
        prefer_advantage([group_with(1), group_with(7)], wanted=1, chance=chance)[0].prompt[0]
        for _ in range(2000)
    ]
    # sqrt(7) to sqrt(1/7)
    assert 0.84 < drawn.count(1) / len(drawn) < 0.91


def test_groups_without_advantage_come_last() -> None:
    groups = [group_with(0), group_with(8), group_with(7)]
    (first, *_) = prefer_advantage(groups, wanted=3, chance=random.Random(0))
    assert first.prompt == [7]


def test_no_more_are_drawn_than_wanted_and_none_twice() -> None:
    groups = [group_with(right) for right in range(1, 8)]
    drawn = prefer_advantage(groups, wanted=4, chance=random.Random(0))
    assert len({group.prompt[0] for group in drawn}) == 4


def test_nothing_can_be_drawn_of_nothing() -> None:
    assert prefer_advantage([], wanted=2, chance=random.Random(0)) == []


def trainer_with_candidates(verifier: Verifier, config: TrainConfig) -> Trainer:
    texts = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")
    offered = [external_sum(verifier, texts, counter=counter) for counter in range(4)]
    season = toy_season(local=2, external=1)
    return make_trainer(verifier, season=season, config=config, exchange=PoolInMemory(offered))


def test_sampling_by_advantage_scores_all_candidates_and_uses_as_many_as_places(
    verifier: Verifier,
) -> None:
    uniform = trainer_with_candidates(verifier, TrainConfig())
    by_advantage = trainer_with_candidates(verifier, TrainConfig(external_sampling="advantage"))
    assert uniform.step().external_used == 1
    report = by_advantage.step()
    assert (report.external_used, report.external_dropped) == (1, {"not_drawn": 3})
    assert len(uniform.state_dict()["seen"]) == 1
    assert len(by_advantage.state_dict()["seen"]) == 4
