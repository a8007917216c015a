"""Own and external groups form one training set."""

import random
from collections import Counter
from collections.abc import Iterable

from node_client.learning.rollouts import TrainingGroup, assemble_training_set
from tests.node_client.fakes import group_of


def groups_of(numbers: Iterable[int]) -> list[TrainingGroup]:
    return [group_of(0, 1, prompt=[number]) for number in numbers]


def numbers_of(groups: list[TrainingGroup]) -> list[int]:
    return [group.prompt[0] for group in groups]


def test_training_set_has_local_and_external_groups() -> None:
    mixed = assemble_training_set(
        own=groups_of(range(8)),
        external=groups_of(range(100, 104)),
        size=8,
        rng=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (4, 4)
    assert sum(number >= 100 for number in numbers_of(mixed.groups)) == 4
    assert len(set(numbers_of(mixed.groups))) == 8


def test_missing_external_groups_are_replaced_by_spare_own_ones() -> None:
    mixed = assemble_training_set(
        own=groups_of(range(8)),
        external=groups_of([100]),
        size=8,
        rng=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (7, 1)


def test_training_set_is_smaller_without_spare_own_groups() -> None:
    mixed = assemble_training_set(
        own=groups_of(range(4)),
        external=[],
        size=8,
        rng=random.Random(0),
    )
    assert (mixed.local, mixed.external) == (4, 0)


def test_own_groups_are_drawn_uniformly() -> None:
    drawn: Counter[int] = Counter()
    for seed in range(400):
        mixed = assemble_training_set(
            own=groups_of(range(4)),
            external=[],
            size=1,
            rng=random.Random(seed),
        )
        drawn.update(numbers_of(mixed.groups))
    assert all(60 < drawn[number] < 140 for number in range(4))
