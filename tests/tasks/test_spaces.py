"""The number of questions of a dataset is estimated from a sample, with an interval."""

import math
from collections.abc import Sequence
from random import Random

import pytest

from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.allowlist import GENERATOR, allowed_datasets
from swarm_tasks.generation_errors import GenerationError
from swarm_tasks.levels import level_record
from swarm_tasks.spaces import (
    DatasetLifetime,
    Space,
    estimate_lifetimes,
    find_space,
    measure_space,
    space_record,
)
from swarm_tasks.starter import DEMO_TASKS, YEAR_TASKS
from swarm_tasks.verifier import Verifier


class Urn(Verifier):
    """Has `size` questions; the first `common` of them are half of what is drawn."""

    def __init__(self, size: int, *, common: int = 0, salt: int = 0) -> None:
        super().__init__()
        self.size, self.common, self.salt = size, common, salt

    def sample_digests(
        self, *, dataset: str, config: Config, seed: int, indices: Sequence[int]
    ) -> list[int]:
        return [self._pick(Random(f"{self.salt}:{index}")) for index in indices]

    def _pick(self, chance: Random) -> int:
        if self.common and chance.random() < 0.5:
            return chance.randrange(self.common)
        return chance.randrange(self.size)


def measure(urn: Verifier, *, draws: int = 2_000, seconds: float = 60) -> Space:
    return measure_space("gcd", {}, verifier=urn, draws=draws, seconds=seconds)


def asked_until_used_up(urn: Urn) -> int:
    """Return the number of questions asked when one draw of five is new; exact up to rounding."""
    half = 0.5 if urn.common else 1.0
    kinds = [(urn.size - urn.common, half / urn.size)]
    if urn.common:
        kinds.append((urn.common, 0.5 / urn.common + half / urn.size))
    low, high = 0.0, 100.0 * urn.size
    while high - low > 0.5:
        draws = (low + high) / 2
        new = sum(count * chance * math.exp(-draws * chance) for count, chance in kinds)
        low, high = (draws, high) if new > 0.2 else (low, draws)
    return round(sum(count * (1 - math.exp(-low * chance)) for count, chance in kinds))


@pytest.mark.parametrize("size", [300, 5_000, 40_000])
@pytest.mark.parametrize("common", [0, 100])
def test_interval_contains_the_number_of_questions(size: int, common: int) -> None:
    """In at least 33 of 40 samples, as usual for such estimates if some questions are frequent."""
    held = near = 0
    for salt in range(40):
        urn = Urn(size, common=common, salt=salt)
        space, truth = measure(urn), asked_until_used_up(urn)
        held += space.at_least <= truth <= space.at_most
        near += 0.6 <= space.questions / truth <= 1.7
    assert held >= 33
    assert near >= 36


def test_small_dataset_is_sampled_until_it_is_used_up() -> None:
    space = measure(Urn(300))
    assert space.used_up
    assert space.draws < 700
    assert space.questions == space.distinct
    assert 0.9 * space.distinct < space.at_least < space.distinct


def test_sample_without_repeats_gives_only_a_lower_bound() -> None:
    space = measure(Urn(2**60), draws=1_000)
    assert space.questions == math.inf
    assert 100_000 < space.at_least < 200_000


def test_empty_sample_gives_no_estimate() -> None:
    space = measure(Urn(300), seconds=0)
    assert (space.draws, space.questions, space.at_least) == (0, math.inf, 0)


def test_hanging_generator_ends_the_sample() -> None:
    class Hangs(Urn):
        def sample_digests(self, **named: object) -> list[int]:
            raise GenerationError(ErrorCode.VERIFIER_FAILED, "no answer within 5 s")

    assert measure(Hangs(300)).draws == 0


def test_sample_of_a_real_child_estimates_the_questions_that_it_can_make(
    verifier: Verifier,
) -> None:
    """There are 1,600 pairs of numbers up to 40; the generator makes those without a common divisor
    less often.
    """
    config: Config = {"min_numbers": 2, "max_numbers": 2, "max_value": 40}
    space = measure_space("gcd", config, verifier=verifier, draws=20_000, seconds=60)
    assert 850 < space.questions < 1_050


def test_rounds_are_estimated_from_the_judges_share_of_questions() -> None:
    tasks = [TaskChoice("gcd", {}, 3.0), TaskChoice("lcm", {}, 1.0)]
    exact = Space(draws=9_000, distinct=4_000, once=1_000, twice=900)
    unknown = Space(draws=0, distinct=0, once=0, twice=0)
    gcd, lcm = estimate_lifetimes(tasks, 4, spaces={"gcd": exact, "lcm": unknown})
    assert (gcd.asked, round(gcd.about)) == (3, 333)
    assert 300 < gcd.at_least < gcd.about < gcd.at_most < 366
    assert lcm == DatasetLifetime("lcm", asked=1, at_least=0, about=math.inf, at_most=math.inf)


# ---- measurements of the gate


def test_shipped_record_covers_defaults_and_levels_of_every_allowed_dataset() -> None:
    record = space_record()
    assert record.generator == GENERATOR
    assert set(record.spaces) == set(allowed_datasets())
    measured = sum(len(spaces) for spaces in record.spaces.values())
    levels = sum(map(len, level_record().levels.values()))
    assert measured > 0.97 * (len(allowed_datasets()) + levels), "an entry takes 5 s"


def test_mixes_of_the_package_last_as_long_as_intended() -> None:
    """A year of rounds of 16 questions, one every five minutes; a demo of 25 minutes."""
    for tasks, questions, rounds in ((YEAR_TASKS, 16, 105_120), (DEMO_TASKS, 128, 34)):
        spaces = {task.dataset: space for task in tasks if (space := find_space(task))}
        for lasting in estimate_lifetimes(tasks, questions, spaces=spaces):
            assert lasting.about >= rounds, lasting


def test_space_is_found_with_defaults_omitted_or_explicit() -> None:
    short = find_space(TaskChoice("gcd", {}, 1.0))
    fields = allowed_datasets()["gcd"].fields
    whole = {name: field.default for name, field in fields.items()}
    assert short is not None
    assert find_space(TaskChoice("gcd", whole, 1.0)) == short
    assert find_space(TaskChoice("gcd", {"max_value": 77}, 1.0)) is None
