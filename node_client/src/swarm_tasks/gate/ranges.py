"""Finds which fields of a dataset's configuration may be set, and to what.

The range of a number field covers the values of the library's curriculum and the default; for a
whole number, small values such as 1 are tried too. Each end of a range must work, first for the
field alone and then together with the same ends of all other number fields; an end that does not
work moves towards the default. A field whose ends meet cannot be set.

With all number fields at one end, TIMED_ENTRIES entries must be made in time. This number is large
because a dataset may be fast for a hundred entries and take seconds for another, and a node that
publishes rollouts could choose the slow one.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Literal

from reasoning_gym.coaching.attributes import RangeAttributeDefinition, ScalarAttributeDefinition
from reasoning_gym.factory import CURRICULA, DATASETS

from swarm_tasks.child.generators import build_entry, open_dataset
from swarm_tasks.gate.isolate import succeeds_isolated
from swarm_tasks.gate_records import Field, Number
from swarm_tasks.keyspace import INDEX_END
from swarm_tasks.step_board import SOLVED

# Seconds of processor time that making an entry may take; the verifier gives up after 5 s.
SLOWEST_ENTRY_S = 3.0
TIMED_ENTRIES = 500
# Seconds that making an entry may take on average.
_SLOW_ENTRY_S = 0.05
_TRIAL_INDICES = (3, 2**30 + 5, 2**31 - 7)
_TRIAL_SEED = 20_250_911
_TRIAL_DEADLINE_S = 3.0
_MAX_QUESTION_CHARS = 8192
_SMALL = (1, 2, 3, 4, 5, 10)
_MAX_CHOICES = 12
_HALVINGS = 5

Config = dict[str, Any]


def settable_fields(name: str, *, by_index: bool) -> dict[str, Field]:
    """Return the fields of a dataset's configuration that may be set, by name.

    `by_index` says whether the generator can make the entry of any index (`Measured.by_index`).
    """
    trial = Trial(name, by_index)
    numbers = {
        field: bounded
        for field, candidate in trial.candidates.items()
        if (bounded := trial.bound(field, candidate)) is not None
    }
    numbers = trial.bound_jointly(numbers, trial.works)
    numbers = trial.bound_jointly(numbers, trial.is_fast_enough)
    others = {
        field: candidate
        for field, candidate in _other_candidates(trial.defaults)
        if all(trial.works({field: value}) for value in _extremes(candidate))
    }
    return dict(sorted({**numbers, **others}.items()))


class Trial:
    """Tries configurations of one dataset.

    `defaults` has the library's default value of each field. `candidates` has, by name, the number
    fields that the library's curriculum changes (`_number_candidates`).
    """

    def __init__(self, name: str, by_index: bool) -> None:
        self._name = name
        self._by_index = by_index
        config = DATASETS[name][1]()
        self.defaults: Config = {
            field.name: getattr(config, field.name)
            for field in dataclasses.fields(config)
            if field.name not in ("seed", "size")
        }
        self.candidates = _number_candidates(name, self.defaults)

    def works(self, config: Config) -> bool:
        """Return whether the dataset works with a configuration.

        A few entries must be made in time and have short questions, and the verifier must accept
        their right answers.
        """
        return succeeds_isolated(_TRIAL_DEADLINE_S, _try_config, self._name, config, self._by_index)

    def is_fast_enough(self, config: Config) -> bool:
        """Return whether TIMED_ENTRIES entries are made in time.

        There are two limits, in seconds of processor time. No entry may take more than
        SLOWEST_ENTRY_S, and the average may not be more than about _SLOW_ENTRY_S.
        """
        deadline_s = TIMED_ENTRIES * _SLOW_ENTRY_S + SLOWEST_ENTRY_S
        return succeeds_isolated(deadline_s, _time_entries, self._name, config, self._by_index)

    def bound(self, field: str, candidate: Field) -> Field | None:
        """Return the field with its range narrowed to values that work.

        `candidate` is the field with the range to try. The new range goes from the lowest to the
        highest tried value that works. All other fields keep their defaults, except the partner of
        a `min_x` or `max_x` (`_with_partner`). Returns None if no value but the default works.
        """
        low = next(
            (value for value in _lows(candidate) if self._works_alone(field, value)),
            candidate.default,
        )
        high = next(
            (value for value in _highs(candidate) if self._works_alone(field, value)),
            candidate.default,
        )
        return _narrowed(candidate, low, high)

    def bound_jointly(
        self, fields: dict[str, Field], works: Callable[[Config], bool]
    ) -> dict[str, Field]:
        """Return the fields with ranges narrowed until `works` accepts their ends.

        `works` is first called with all fields at their low ends (`_all_at`). Each time it returns
        False, all low ends move half way to the defaults. After _HALVINGS + 1 failures, the low
        ends become the defaults. The high ends are then treated likewise. A field is dropped when
        its two ends become equal.
        """
        for end in ("low", "high"):
            for _ in range(_HALVINGS + 1):
                if works(_all_at(fields, end)):
                    break
                fields = _moved(fields, end, _half_way)
            else:
                fields = _moved(fields, end, lambda _, default: default)
        return fields

    def _works_alone(self, field: str, value: Number) -> bool:
        return any(self.works(config) for config in self._with_partner(field, value))

    def _with_partner(self, field: str, value: Number) -> Iterator[Config]:
        """Yield configurations in which a field has this value, with a partner that allows it.

        The partner of a field `min_x` is `max_x`, set to its default, or to `value` if higher. Some
        generators require different values, so `max_x` is also tried at its highest value. The
        partner of a field `max_x` is `min_x`, set to its default, or to `value` if lower.
        """
        above, below = field.replace("min_", "max_", 1), field.replace("max_", "min_", 1)
        if above != field and above in self.defaults:
            partners = (max(self.defaults[above], value), self._highest(above))
            yield from ({field: value, above: partner} for partner in dict.fromkeys(partners))
        elif below != field and below in self.defaults:
            yield {field: value, below: min(self.defaults[below], value)}
        else:
            yield {field: value}

    def _highest(self, field: str) -> Any:
        candidate = self.candidates.get(field)
        return self.defaults[field] if candidate is None else candidate.high


def _all_at(fields: Mapping[str, Field], end: str) -> Config:
    """Return the configuration with all fields at one end, `low` or `high`.

    With `high`, a `min_x` that has a `max_x` is left out, so it keeps its default.
    """
    return {
        name: getattr(field, end)
        for name, field in fields.items()
        if end == "low" or not name.startswith("min_") or f"max_{name[4:]}" not in fields
    }


def _try_config(name: str, config: Config, by_index: bool) -> None:
    scorer = open_dataset(name, config, seed=_TRIAL_SEED)
    for index in _TRIAL_INDICES:
        entry = build_entry(name, config, seed=_TRIAL_SEED, index=index, by_index=by_index)
        if len(entry["question"]) > _MAX_QUESTION_CHARS:
            raise ValueError("the question is too long")
        if scorer.score_answer(entry["answer"].strip(), entry) < SOLVED:
            raise ValueError("the right answer does not score")


def _time_entries(name: str, config: Config, by_index: bool) -> None:
    """Make TIMED_ENTRIES entries. Raises TimeoutError if one takes more than SLOWEST_ENTRY_S.

    Other errors are ignored, because a draw skips an index at which the generator raises.
    """
    # Opened once: some read long lists of words.
    dataset = open_dataset(name, config, seed=_TRIAL_SEED)
    rng = Random(_TRIAL_SEED)
    for _ in range(TIMED_ENTRIES):
        start, index = time.process_time(), rng.randrange(INDEX_END)
        with suppress(Exception):
            if by_index:
                dataset[index]
            else:
                build_entry(name, config, seed=_TRIAL_SEED, index=index, by_index=False)
        if time.process_time() - start > SLOWEST_ENTRY_S:
            raise TimeoutError("an entry takes too long")


def _number_candidates(name: str, defaults: Config) -> dict[str, Field]:
    """Return the number fields that the dataset's curriculum changes, by name.

    A field's range covers its default and its values at all levels of the curriculum.
    """
    candidates = {}
    for field, levels in _curriculum_levels(name):
        default = defaults[field]
        values = [default, *levels]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            kind = type(default)
            values = [kind(value) for value in values]
            type_name: Literal["int", "float"] = "int" if kind is int else "float"
            candidates[field] = Field(type_name, default, min(values), max(values))
    return candidates


def _curriculum_levels(name: str) -> Iterator[tuple[str, list[Any]]]:
    curriculum = CURRICULA.get(name)
    if curriculum is None:
        return
    for attribute in curriculum().attributes.values():
        if isinstance(attribute, RangeAttributeDefinition):
            yield attribute.lower_field_name, attribute.levels
            yield attribute.upper_field_name, attribute.levels
        elif isinstance(attribute, ScalarAttributeDefinition):
            yield attribute.field_name, attribute.levels


def _other_candidates(defaults: Config) -> Iterator[tuple[str, Field]]:
    for name, default in defaults.items():
        if isinstance(default, bool):
            yield name, Field("bool", default)
        elif _is_choice(default):
            yield name, Field("strings", list(default), choices=tuple(default))


def _is_choice(default: object) -> bool:
    """Return whether a default is a list of 2 to 12 different short strings."""
    return (
        isinstance(default, list | tuple)
        and 2 <= len(default) <= _MAX_CHOICES
        and all(isinstance(item, str) and len(item) <= 64 for item in default)
        and len(set(default)) == len(default)
    )


def _extremes(candidate: Field) -> Iterable[object]:
    if candidate.type == "bool":
        return (True, False)
    return [[choice] for choice in candidate.choices]


def _lows(candidate: Field) -> list[Number]:
    """Return values to try as the lower end of a field's range, the lowest first."""
    low, default = candidate.low, candidate.default
    assert low is not None
    assert isinstance(default, int | float)
    lows = {low, _half_way(low, default)}
    if candidate.type == "int":
        lows.update(value for value in _SMALL if value <= default)
    return sorted(lows)


def _highs(candidate: Field) -> Iterator[Number]:
    """Yield values to try as the upper end of a field's range.

    The first is the highest. Each of the others is half way from the one before to the default.
    """
    high, default = candidate.high, candidate.default
    assert high is not None
    assert isinstance(default, int | float)
    for _ in range(_HALVINGS):
        yield high
        high = _half_way(high, default)


def _half_way(value: Number, default: Number) -> Number:
    middle = (value + default) / 2
    return int(middle) if isinstance(default, int) else middle


def _moved(
    fields: Mapping[str, Field], end: str, move: Callable[[Number, Number], Number]
) -> dict[str, Field]:
    """Return the fields with one end of their ranges, `low` or `high`, changed by `move`.

    `move` gets the end and the default, and returns the new end. Fields whose ends meet are
    dropped.
    """
    moved = {}
    for name, field in fields.items():
        assert isinstance(field.default, int | float)
        value = move(getattr(field, end), field.default)
        low, high = (value, field.high) if end == "low" else (field.low, value)
        if narrowed := _narrowed(field, low, high):
            moved[name] = narrowed
    return moved


def _narrowed(field: Field, low: Any, high: Any) -> Field | None:
    return None if low == high else Field(field.type, field.default, low, high)
