"""The automatic mix: places go where they are worth more, within bounds and deterministically."""

import json
import random
import re
from itertools import islice
from statistics import fmean

import msgspec
import pytest

from node_client.learning.external.mix import PERIOD, AutoMix, RolloutMix, make_mix
from node_client.learning.rollouts import TrainingGroup
from node_client.settings.train_config import TrainConfig, plan_step
from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    PoolInMemory,
    external_sum,
    group_of,
    make_trainer,
    toy_policy,
    toy_season,
)
from tests.node_client.learning.scripted import answer_right

UNSOLVED, HALF, SOLVED = group_of(0, 0, 0, 0), group_of(1, 1, 0, 0), group_of(1, 1, 1, 1)
SELDOM_WRONG, SELDOM_RIGHT = group_of(1, 1, 1, 0), group_of(1, 0, 0, 0)


def auto(*, local: int = 4, external: int = 4) -> AutoMix:
    return AutoMix(external, size=local + external, batch=local + external)


def pass_steps(
    mix: AutoMix, count: int, *, own: list[TrainingGroup], external: list[TrainingGroup]
) -> None:
    """Make steps in which the external places get the given rollouts, as far as they suffice."""
    for _ in range(count):
        mix.update(own=own, comparable=own, external=external[: mix.external])


def test_mix_starts_with_that_of_the_season() -> None:
    assert auto(local=6, external=2).external == 2


def test_node_that_solves_nothing_gets_more_external_places() -> None:
    mix = auto()
    pass_steps(mix, PERIOD, own=[UNSOLVED] * 8, external=[HALF] * 8)
    assert mix.external == 5


def test_node_ahead_of_the_others_gets_fewer_external_places() -> None:
    mix = auto()
    pass_steps(mix, PERIOD, own=[SELDOM_WRONG] * 8, external=[HALF] * 8)
    assert mix.external == 3


def test_external_places_are_given_back_if_no_rollouts_arrive() -> None:
    mix = auto()
    pass_steps(mix, PERIOD, own=[HALF] * 4 + [UNSOLVED] * 4, external=[])
    assert mix.external == 3


def test_places_of_equal_worth_are_not_moved() -> None:
    mix = auto()
    # Half of the own rollouts are informative; three in four external ones do better, one worse.
    own = [HALF] * 4 + [UNSOLVED] * 4
    pass_steps(mix, 5 * PERIOD, own=own, external=[SELDOM_WRONG] * 3 + [SELDOM_RIGHT])
    assert mix.external == 4


@pytest.mark.parametrize("likelihood", [0.05, 0.5, 0.9])
def test_external_places_are_worth_nothing_among_equal_nodes(likelihood: float) -> None:
    mix, rng, worth = auto(), random.Random(0), list[float]()

    def answer() -> TrainingGroup:
        return group_of(*(float(rng.random() < likelihood) for _ in range(8)))

    for _ in range(2000):
        passed = (each for each in iter(answer, None) if each.informative)
        mix.update(
            own=(own := [answer() for _ in range(8)]),
            comparable=own,
            external=list(islice(passed, mix.external)),
        )
        worth.append(mix.figures()["external_place"])
    assert abs(fmean(worth)) < 0.05


def test_external_places_are_worthless_to_a_node_that_solves_everything() -> None:
    mix = auto()
    pass_steps(mix, PERIOD, own=[SOLVED] * 8, external=[SELDOM_WRONG] * 8)
    assert mix.figures()["external_place"] == -1


def test_state_of_a_checkpoint_without_informative_rollouts_can_be_read() -> None:
    mix = auto()
    pass_steps(mix, 1, own=[HALF] * 8, external=[])
    state = mix.state()
    del state["informative"]
    mix.load(state)
    pass_steps(mix, 1, own=[HALF] * 8, external=[])
    assert mix.state()["informative"] == {"chain_sum": [0.5] * 8}


def test_uninformative_external_rollouts_are_worth_nothing() -> None:
    mix = auto()
    pass_steps(mix, 1, own=[UNSOLVED] * 8, external=[SOLVED] * 8)
    assert mix.figures()["external_place"] == 0


def test_own_rollouts_of_another_difficulty_are_not_compared_with_external_ones(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums: Config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}
    season = msgspec.structs.replace(toy_season(), tasks=[TaskChoice("chain_sum", sums, 1.0)])
    policy, pool = toy_policy(), PoolInMemory()
    # Easy on the ladder's rung, which is below the season's, and seldom solved at the season's own.
    answer_right(policy, monkeypatch, right=lambda question: 4 * has_one_digit_terms(question))
    config = TrainConfig(mix="auto", curriculum="ladder", batch=8)
    trainer = make_trainer(verifier, policy=policy, season=season, config=config, exchange=pool)
    state = trainer.state_dict()
    state["questions"]["curriculum"]["ladder"]["rungs"] = [0]
    trainer.load_state(state)
    report = trainer.step()
    of_season = [has_one_digit_terms(verifier.question(rollout.task)) for rollout in pool.published]
    assert len(of_season) == 2
    assert trainer.state_dict()["mix"]["auto"]["solved"] == {"chain_sum": fmean(of_season)}
    assert report.training_reward > fmean(of_season)


def has_one_digit_terms(question: str) -> bool:
    return re.search(r"\d\d", question) is None


def test_worth_of_external_rollouts_is_measured_by_dataset() -> None:
    mix = auto()
    own = [SOLVED] * 4 + [group_of(0, 0, dataset="gcd")] * 4
    pass_steps(mix, PERIOD, own=own, external=[group_of(1, 0, 0, 0, dataset="gcd")] * 8)
    assert mix.external == 5


def test_bounds_are_respected_and_the_size_is_constant() -> None:
    taking, keeping = auto(), auto()
    for _ in range(20):
        pass_steps(taking, PERIOD, own=[UNSOLVED] * 8, external=[HALF] * 8)
        pass_steps(keeping, PERIOD, own=[HALF] * 8, external=[])
    places = [(mix.figures()["local"], mix.external) for mix in (taking, keeping)]
    assert places == [(2, 6), (7, 1)]


def test_no_more_own_rollouts_are_planned_than_are_generated() -> None:
    mix = AutoMix(4, size=8, batch=5)
    pass_steps(mix, 20 * PERIOD, own=[HALF] * 5, external=[])
    assert mix.external == 3


@pytest.mark.parametrize(("size", "batch", "moves"), [(32, 8, False), (32, 9, True), (2, 2, False)])
def test_owner_is_notified_if_an_automatic_mix_cannot_change(
    size: int, batch: int, moves: bool
) -> None:
    notice = AutoMix(1, size=size, batch=batch).notice()
    assert (notice is None) is moves


def test_notice_of_the_mix_comes_with_the_first_step(verifier: Verifier) -> None:
    trainer = make_trainer(verifier, config=TrainConfig(mix="auto", external=6, batch=2))
    reports = [trainer.step(), trainer.step()]
    assert ["mix = auto has no effect" in (report.notice or "") for report in reports] == [
        True,
        False,
    ]


def test_saved_mix_continues_where_it_was() -> None:
    mix, resumed = auto(), auto()
    pass_steps(mix, 2 * PERIOD - 1, own=[UNSOLVED] * 8, external=[HALF] * 8)
    resumed.load(json.loads(json.dumps(mix.state())))
    assert resumed.figures() == mix.figures()
    pass_steps(resumed, 1, own=[UNSOLVED] * 8, external=[HALF] * 8)
    assert resumed.external == 6


@pytest.mark.parametrize(
    "config", [TrainConfig(), TrainConfig(mix="2/2"), TrainConfig(mix="auto", arm="isolated")]
)
def test_fixed_mix_is_the_default(config: TrainConfig) -> None:
    assert type(make_mix(plan_step(config, toy_season()), config)) is RolloutMix


def test_training_set_follows_the_automatic_mix(verifier: Verifier) -> None:
    pool = PoolInMemory()
    config = TrainConfig(mix="auto", external_candidates=4)
    trainer = make_trainer(verifier, config=config, exchange=pool)
    mixed = ("<answer>{sum}</answer>", "no", "no", "no")
    shares = []
    for step in range(PERIOD + 1):
        # The untrained toy solves nothing, so that every rollout of others helps.
        pool.offered = [
            external_sum(verifier, mixed, counter=4 * step + place) for place in range(4)
        ]
        report = trainer.step()
        shares.append((report.local_used, report.external_used))
    assert shares == [(2, 2)] * PERIOD + [(1, 3)]
    assert report.mix["external"] == 3
