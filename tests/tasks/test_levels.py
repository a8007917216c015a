"""The shipped difficulty levels: the library's, allowed, and ordered around a season's task."""

import pytest

from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.allowlist import check_config, gate_result
from swarm_tasks.gate.levels import list_levels
from swarm_tasks.levels import Rungs, level_record, rungs_around


def rungs_of(dataset: str, **config: int) -> Rungs:
    return rungs_around(TaskChoice(dataset=dataset, config=dict(config), weight=1.0))


def test_shipped_levels_are_those_of_the_installed_library() -> None:
    assert list_levels() == level_record()
    assert level_record().generator == gate_result().generator


@pytest.mark.parametrize("dataset", sorted(level_record().levels))
def test_every_rung_is_an_allowed_config(dataset: str) -> None:
    for config in [*level_record().levels[dataset], *rungs_of(dataset).configs]:
        check_config(dataset, config)


def test_config_of_the_season_is_placed_between_easier_and_harder_levels() -> None:
    rungs = rungs_of("spell_backward", min_word_len=3, max_word_len=6)
    longest = [config["max_word_len"] for config in rungs.configs]
    assert longest == [3, 5, 6, 7, 9, 11]
    assert rungs.home == 2


def test_level_with_one_easier_and_one_harder_number_is_omitted() -> None:
    # Many short numbers: the library's levels have either fewer terms or more digits.
    rungs = rungs_of("chain_sum", min_terms=2, max_terms=4, min_digits=1, max_digits=1)
    shown = [(config["max_terms"], config["max_digits"]) for config in rungs.configs]
    assert shown[:3] == [(2, 1), (4, 1), (4, 3)]
    assert rungs.home == 1


def test_field_without_a_curriculum_has_the_value_of_the_season() -> None:
    rungs = rungs_around(
        TaskChoice("chain_sum", {"allow_negation": True, "max_terms": 3, "max_digits": 2}, 1.0)
    )
    assert {config["allow_negation"] for config in rungs.configs} == {True}


@pytest.mark.parametrize("dataset", ["acre", "syllogism"])
def test_dataset_without_levels_has_only_the_config_of_the_season(dataset: str) -> None:
    config: Config = {}
    rungs = rungs_around(TaskChoice(dataset, config, 1.0))
    assert (rungs.configs, rungs.home) == ([config], 0)
