"""A season sets how many rollouts a node generates in each step, in both arms."""

import msgspec

from node_client.settings.train_config import TrainConfig, plan_step
from tests.node_client.fakes import toy_season

SEASON = msgspec.structs.replace(toy_season(local=8, external=24), batch=8)


def test_both_arms_generate_the_seasons_batch() -> None:
    swarm = plan_step(TrainConfig(), SEASON)
    isolated = plan_step(TrainConfig(arm="isolated"), SEASON)
    assert (swarm.local, swarm.external, swarm.batch) == (8, 24, 8)
    assert (isolated.local, isolated.external, isolated.batch) == (8, 0, 8)


def test_batch_of_the_node_overrides_that_of_the_season() -> None:
    assert plan_step(TrainConfig(batch=16), SEASON).batch == 16


def test_batch_is_enlarged_to_the_own_rollouts_of_the_mix() -> None:
    assert plan_step(TrainConfig(mix="12/4"), SEASON).batch == 12


def test_season_without_a_batch_generates_a_whole_training_set() -> None:
    season = toy_season(local=8, external=24)
    assert plan_step(TrainConfig(), season).batch == 32
    isolated = plan_step(TrainConfig(arm="isolated"), season)
    assert (isolated.local, isolated.batch) == (32, 32)
