"""The staged curriculum: which questions are asked in each stage, and what ends the first."""

import json
import random

import msgspec
import pytest

from node_client.learning.questions.curriculum import StepOutcome
from node_client.learning.questions.stages import MIN_GAIN, PATIENCE, WINDOW, Plateau, Stages
from node_client.learning.questions.subjects import MATHEMATICS
from node_client.runtime.alone import practice_season
from node_client.settings.choices import StageSwitch
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import SeasonInfo, TaskChoice
from swarm_tasks.allowlist import allowed_datasets
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, make_trainer, toy_season, writing_policy

MIXED_SEASON = msgspec.structs.replace(
    toy_season(),
    tasks=[TaskChoice("chain_sum", {}, 1.0), TaskChoice("spell_backward", {}, 1.0)],
)


NEXT_SEASON = msgspec.structs.replace(MIXED_SEASON, name="next")


def stages(
    *, switch: StageSwitch = "plateau", rounds: int = 3, season: SeasonInfo = MIXED_SEASON
) -> Stages:
    return Stages(season, switch=switch, rounds=rounds)


def datasets_of(curriculum: Stages) -> set[str]:
    """Return the datasets of forty questions."""
    return {curriculum.choose(counter, rng=random.Random(counter)).dataset for counter in range(40)}


def pass_steps(
    curriculum: Stages, count: int, *, reward: float = 0.5, judge_round: int | None = None
) -> None:
    for _ in range(count):
        curriculum.update(StepOutcome([], reward, judge_round))


def test_every_allowed_dataset_is_classified_as_mathematics_or_code() -> None:
    # A dataset that is new on the allow-list has to be added here, or to the mathematical ones.
    code = """
    ab arc_1d base_conversion bf binary_alternation binary_matrix caesar_cipher
    color_cube_rotation course_schedule emoji_mystery figlet_font group_anagrams jugs kakurasu
    largest_island letter_counting letter_jumble mahjong_puzzle manipulate_matrix maze
    mini_sudoku needle_haystack number_filtering palindrome_generation palindrome_partitioning
    path_star pool_matrix quantum_lock rectangle_count rotate_matrix rotten_oranges
    sentence_reordering shortest_path spell_backward string_manipulation string_splitting
    string_synthesis sudoku survo tower_of_hanoi tsumego word_sequence_reversal word_sorting
    """
    assert set(MATHEMATICS) | set(code.split()) == set(allowed_datasets())
    assert all(MATHEMATICS.values())


def test_first_stage_asks_only_mathematics() -> None:
    assert datasets_of(stages()) == {"chain_sum"}


def test_second_stage_adds_code() -> None:
    curriculum = stages()
    pass_steps(curriculum, WINDOW * (1 + PATIENCE))
    assert curriculum.figures() == {"stage": 2}
    assert datasets_of(curriculum) == {"chain_sum", "spell_backward"}


def test_season_with_a_single_class_is_asked_unchanged() -> None:
    season = msgspec.structs.replace(toy_season(), tasks=[TaskChoice("spell_backward", {}, 1.0)])
    assert datasets_of(stages(season=season)) == {"spell_backward"}


def test_first_stage_ends_after_judge_rounds_regardless_of_the_reward() -> None:
    curriculum = stages(switch="round", rounds=3)
    pass_steps(curriculum, 200)
    for number in (41, 42, 43):
        pass_steps(curriculum, 5, judge_round=number)
    assert curriculum.stage == 1
    pass_steps(curriculum, 1, judge_round=44)
    assert curriculum.stage == 2


def test_next_season_ends_the_first_stage() -> None:
    curriculum = stages(switch="season")
    pass_steps(curriculum, 200, judge_round=50)
    resumed, later = stages(switch="season"), stages(switch="season", season=NEXT_SEASON)
    resumed.load(curriculum.state(), same_season=True)
    later.load(curriculum.state(), same_season=False)
    assert (resumed.stage, later.stage) == (1, 2)


def after(curriculum: Stages, season: SeasonInfo, *, switch: StageSwitch = "season") -> Stages:
    """Return the curriculum of the next season, made as in a node."""
    later = stages(switch=switch, season=season)
    later.load(json.loads(json.dumps(curriculum.state())), same_season=False)
    return later


def test_practice_does_not_count_as_a_season_that_ends_the_first_stage() -> None:
    practising = stages(switch="season", season=practice_season())
    first = after(practising, MIXED_SEASON)
    assert first.stage == 1
    paused = after(first, practice_season())
    assert after(paused, MIXED_SEASON).stage == 1
    assert after(paused, NEXT_SEASON).stage == 2


@pytest.mark.parametrize("switch", ["plateau", "round"])
def test_progress_in_practice_does_not_carry_over_into_a_season(switch: StageSwitch) -> None:
    practising = stages(switch=switch, season=practice_season())
    pass_steps(practising, 1, judge_round=1)
    pass_steps(practising, 200, judge_round=9)
    assert practising.stage == 2
    later = after(practising, MIXED_SEASON, switch=switch)
    pass_steps(later, 1, judge_round=10)
    assert later.stage == 1


def test_season_continues_after_practice_where_it_was() -> None:
    before = stages()
    pass_steps(before, WINDOW * (1 + PATIENCE))
    practising = after(before, practice_season(), switch="plateau")
    assert after(practising, MIXED_SEASON, switch="plateau").stage == 2


def test_stage_survives_a_restart() -> None:
    curriculum, resumed = stages(), stages()
    pass_steps(curriculum, WINDOW * (1 + PATIENCE) - 1)
    resumed.load(json.loads(json.dumps(curriculum.state())), same_season=True)
    assert resumed.stage == 1
    pass_steps(resumed, 1)
    assert resumed.stage == 2


@pytest.mark.parametrize(
    ("means", "reached"),
    [
        ([0.1, 0.1, 0.1], True),
        ([0.1, 0.2, 0.3, 0.4], False),
        ([0.1, 0.1, 0.2, 0.2], False),
        ([0.1, 0.1, 0.2, 0.1, 0.2], True),
        # A fall with a recovery is no gain over the best.
        ([0.5, 0.1, 0.4], True),
        ([0.1, 0.1 + 2 * MIN_GAIN, 0.1], False),
        ([0.1, 0.1], False),
    ],
)
def test_plateau_is_two_windows_without_a_gain_over_the_best(
    means: list[float], reached: bool
) -> None:
    plateau = Plateau()
    for mean in means:
        for _ in range(WINDOW):
            plateau.update(mean)
    assert plateau.reached is reached


def test_plateau_stays_reached_and_stores_no_more_than_a_window() -> None:
    plateau = Plateau()
    for step in range(500):
        plateau.update(0.1 if step < 400 else 0.9)
        assert len(plateau.window) < WINDOW
    assert plateau.reached


def test_training_set_of_the_first_stage_is_mathematics(verifier: Verifier) -> None:
    pool = PoolInMemory()
    trainer = make_trainer(
        verifier,
        policy=writing_policy(),
        season=MIXED_SEASON,
        config=TrainConfig(curriculum="staged"),
        exchange=pool,
    )
    report = trainer.step()
    assert {rollout.task.dataset for rollout in pool.published} == {"chain_sum"}
    assert report.curriculum == {"stage": 1}
