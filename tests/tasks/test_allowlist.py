"""Refused datasets and configurations, and the messages of the errors."""

import re

import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config, TaskChoice, TaskSpec
from swarm_tasks.allowlist import (
    GENERATOR,
    allowed_datasets,
    check_config,
    check_training_spec,
    gate_result,
)
from swarm_tasks.keyspace import RANGES, Part
from swarm_tasks.starter import STARTER_TASKS
from tests.tasks.specs import ONE_DIGIT, SEED, make_spec

MIX = (TaskChoice("chain_sum", ONE_DIGIT, 1.0), TaskChoice("gcd", {}, 2.0))
EXECUTING_DATASETS = (
    *("countdown", "intermediate_integration", "n_queens", "puzzle24", "simple_integration"),
    *("polynomial_multiplication", "spiral_matrix", "string_insertion"),
    *("bitwise_arithmetic", "number_sorting"),
)


def refusal_of(spec: TaskSpec) -> str:
    with pytest.raises(RefusedError) as caught:
        check_training_spec(spec, seed=SEED, tasks=MIX)
    return caught.value.code


def test_76_of_105_generators_are_allowed() -> None:
    assert (len(allowed_datasets()), len(gate_result().datasets)) == (76, 105)


@pytest.mark.parametrize("dataset", EXECUTING_DATASETS)
def test_dataset_that_executes_text_is_refused(dataset: str) -> None:
    with pytest.raises(RefusedError, match="execut") as caught:
        check_config(dataset, {})
    assert caught.value.code is ErrorCode.TASK_DATASET


def test_unknown_dataset_is_refused_and_error_names_generator() -> None:
    with pytest.raises(RefusedError, match=GENERATOR) as caught:
        check_config("no_such_dataset", {})
    assert caught.value.code is ErrorCode.TASK_DATASET


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_terms": 99}, "chain_sum.max_terms is 99, allowed is a whole number from 1 to 12"),
        ({"max_terms": 2.5}, "max_terms is 2.5, allowed is a whole number"),
        ({"max_terms": True}, "max_terms is True"),
        ({"max_terms": float("nan")}, "max_terms is nan"),
        ({"allow_negation": 1}, "allow_negation is 1, allowed is true or false"),
        ({"seed": 3}, "no settable field 'seed'"),
        ({"size": 10}, "no settable field 'size'"),
        ({"min_terms": 7, "max_terms": 3}, "min_terms is 7, above max_terms which is 3"),
        ({"min_terms": 9}, "min_terms is 9, above max_terms which is 6"),
    ],
)
def test_config_outside_ranges_is_refused_and_error_names_field_and_range(
    config: Config, words: str
) -> None:
    with pytest.raises(RefusedError, match=re.escape(words)) as caught:
        check_config("chain_sum", config)
    assert caught.value.code is ErrorCode.TASK_CONFIG


@pytest.mark.parametrize("styles", [[], ["plain", "plain"], ["fancy"], "plain"])
def test_list_field_must_contain_distinct_known_choices(styles: list[str] | str) -> None:
    with pytest.raises(RefusedError, match="list of different ones of"):
        check_config("fraction_simplification", {"styles": styles})


def test_every_default_is_within_its_range() -> None:
    for name, dataset in allowed_datasets().items():
        check_config(name, {field: known.default for field, known in dataset.fields.items()})


def test_no_dataset_allows_setting_seed_or_size() -> None:
    for dataset in allowed_datasets().values():
        assert not {"seed", "size"} & set(dataset.fields)


@pytest.mark.parametrize("choice", STARTER_TASKS, ids=lambda choice: choice.dataset)
def test_starter_mix_is_allowed(choice: TaskChoice) -> None:
    check_config(choice.dataset, choice.config)


def test_spec_of_the_season_is_accepted() -> None:
    check_training_spec(make_spec(config=ONE_DIGIT), seed=SEED, tasks=MIX)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (make_spec("puzzle24"), ErrorCode.TASK_DATASET),
        (make_spec("lcm"), ErrorCode.TASK_DATASET),
        (make_spec(config={**ONE_DIGIT, "max_terms": 3}), ErrorCode.TASK_CONFIG),
        (make_spec(config={**ONE_DIGIT, "min_digits": True}), ErrorCode.TASK_CONFIG),
        (make_spec(config=ONE_DIGIT, seed=SEED + 1), ErrorCode.TASK_FOREIGN),
        (make_spec(config=ONE_DIGIT, index=RANGES[Part.JUDGE].start), ErrorCode.TASK_INDEX),
        (make_spec(config=ONE_DIGIT, index=RANGES[Part.HELD_OUT].start), ErrorCode.TASK_INDEX),
        (
            TaskSpec("chain_sum", ONE_DIGIT, SEED, 7, "reasoning-gym 0.0.1"),
            ErrorCode.TASK_FOREIGN,
        ),
    ],
)
def test_spec_outside_the_season_is_refused(spec: TaskSpec, code: ErrorCode) -> None:
    assert refusal_of(spec) is code


def test_mix_cannot_allow_a_dataset_outside_the_allow_list() -> None:
    with pytest.raises(RefusedError) as caught:
        check_training_spec(
            make_spec("puzzle24"), seed=SEED, tasks=[TaskChoice("puzzle24", {}, 1.0)]
        )
    assert caught.value.code is ErrorCode.TASK_DATASET
