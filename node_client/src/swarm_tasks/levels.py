"""The easier and harder configurations of a season's dataset; no I/O but one package file.

`levels.json` holds the levels of reasoning-gym's own curricula within the allow-list's ranges. It
is written by `python -m swarm_tasks.gate.levels` (`docs/tasks.md`).
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from swarm_protocol.messages import Config, ConfigValue, TaskChoice
from swarm_tasks.allowlist import allowed_datasets, is_allowed
from swarm_tasks.gate_records import PACKAGE, LevelRecord


@dataclass(frozen=True)
class Rungs:
    """A dataset's configurations, easiest first; `configs[home]` is the season's configuration."""

    configs: Sequence[Config]
    home: int


@functools.cache
def level_record() -> LevelRecord:
    """Return the content of the package's `levels.json`."""
    return msgspec.json.decode((PACKAGE / "levels.json").read_bytes(), type=LevelRecord)


def rungs_around(task: TaskChoice) -> Rungs:
    """Return the easier levels of a season's task, the season's configuration, and the harder ones.

    A level is easier if at least one number field has an easier value than in the season's
    configuration, and no field has a harder one. Harder levels are defined likewise. All other
    levels are left out.

    A number field has the level's value if it only rises or only falls from level to level. All
    other fields keep the season's values. A level is left out if it is not allowed with these
    values.

    Raises KeyError for a dataset that is not allowed.
    """
    levels = level_record().levels.get(task.dataset, [])
    fields = allowed_datasets()[task.dataset].fields
    season = {name: field.default for name, field in fields.items()} | task.config
    directions = _directions(levels)
    easier: list[Config] = []
    harder: list[Config] = []
    for level in levels:
        steps = [
            _sign(value, season[name]) * directions[name]
            for name, value in level.items()
            if name in directions
        ]
        moved = task.config | {name: level[name] for name in directions}
        if not any(steps) or not is_allowed(task.dataset, moved):
            continue
        if max(steps) <= 0:
            easier.append(moved)
        elif min(steps) >= 0:
            harder.append(moved)
    return Rungs(configs=[*easier, task.config, *harder], home=len(easier))


def _directions(levels: Sequence[Config]) -> Mapping[str, int]:
    """Return for each number field, by name, whether it rises (1) or falls (-1) with the level.

    Left out are fields that do not change, and fields that both rise and fall, because they do not
    show difficulty.
    """
    directions = {}
    for name in levels[0] if levels else ():
        signs = {_sign(after[name], before[name]) for before, after in pairwise(levels)} - {0}
        if len(signs) == 1:
            directions[name] = signs.pop()
    return directions


def _sign(value: ConfigValue, other: ConfigValue) -> int:
    assert isinstance(value, int | float)
    assert isinstance(other, int | float)
    return (value > other) - (value < other)
