"""Dynamic sampling: generate until enough rollouts are informative, within a bound."""

import random

import pytest

from node_client.learning.own import prefer_informative
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, group_of, make_trainer, toy_policy
from tests.node_client.learning.scripted import answer_right, sum_of

INFORMATIVE, UNINFORMATIVE = group_of(1, 0), group_of(0, 0)


def test_uninformative_groups_only_fill_remaining_places() -> None:
    groups = [UNINFORMATIVE] * 5 + [INFORMATIVE] * 2
    chosen = prefer_informative(groups, count=3, rng=random.Random(1))
    assert [group.informative for group in chosen] == [True, True, False]


def test_informative_groups_are_drawn_uniformly() -> None:
    groups = [group_of(1, 0, 0.1 * place) for place in range(4)]
    drawn = {
        tuple(prefer_informative(groups, count=1, rng=random.Random(seed))[0].rewards)
        for seed in range(50)
    }
    assert len(drawn) == 4


def test_step_trains_only_on_informative_rollouts_if_it_finds_enough(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    # One question in four is solved by some completions, the others by none.
    answer_right(policy, monkeypatch, right=lambda question: 2 * (sum_of(question) % 4 == 0))
    config = TrainConfig(arm="isolated", resampling="dynamic", dynamic_batches=50)
    pool = PoolInMemory()
    report = make_trainer(verifier, policy=policy, config=config, exchange=pool).step()
    informative = round(report.informative_share * report.generated)
    assert report.generated > 4
    # No more than the last batch of four was needed.
    assert 4 == report.local_used <= informative < 4 + 4
    assert len(pool.published) == report.generated


def test_no_batch_is_generated_after_just_enough_informative_rollouts(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    answer_right(policy, monkeypatch, right=lambda question: 2)
    config = TrainConfig(arm="isolated", resampling="dynamic")
    report = make_trainer(verifier, policy=policy, config=config).step()
    assert (report.generated, report.local_used) == (4, 4)


def test_step_without_informative_rollouts_ends_at_the_bound(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    answer_right(policy, monkeypatch, right=lambda question: 0)
    config = TrainConfig(resampling="dynamic", dynamic_batches=3)
    report = make_trainer(verifier, policy=policy, config=config).step()
    assert (report.generated, report.local_used) == (12, 4)
