"""The records of `allowlist.json` and `levels.json`, which the gate writes; no I/O."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct, field

from swarm_protocol.messages import Config, ConfigValue

Number = int | float


class Field(Struct, frozen=True, omit_defaults=True):
    """A configuration field that may be set, and the values that it may have.

    `low` and `high` bound a number, both included; `choices` are the strings that a list may
    contain.
    """

    type: Literal["int", "float", "bool", "strings"]
    default: ConfigValue
    low: Number | None = None
    high: Number | None = None
    choices: tuple[str, ...] = ()


class AllowedDataset(Struct, frozen=True):
    """A dataset that passed the gate.

    `by_index` is false for generators that make a list of all their entries in advance: for these
    the index is added to the seed (`swarm_tasks.child.generators`). `fields` are those that may be
    set.
    """

    name: str
    category: str
    by_index: bool
    fields: Mapping[str, Field]


class Measured(Struct, frozen=True, omit_defaults=True):
    """The entry of a dataset in `allowlist.json`: whether it is allowed, the reasons against it by
    code, measured figures, and the fields that may be set.
    """

    allowed: bool
    category: str
    reasons: dict[str, str]
    figures: dict[str, bool | int | float | str | None]
    by_index: bool = True
    fields: dict[str, Field] = field(default_factory=dict)


class GateResult(Struct, frozen=True):
    """The content of `allowlist.json`. `generator` is the library's name and version."""

    generator: str
    datasets: dict[str, Measured]


def read_gate_result(raw: bytes) -> GateResult:
    """Return the decoded `allowlist.json`. Raises msgspec.ValidationError."""
    return msgspec.json.decode(raw, type=GateResult)


class LevelRecord(Struct, frozen=True):
    """The content of `levels.json`: for each dataset its levels, the easiest first.

    `generator` is the library's name and version.
    """

    generator: str
    levels: dict[str, list[Config]]
