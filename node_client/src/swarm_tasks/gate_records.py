"""What the gate writes and the allow-list reads: the records of `allowlist.json`; no I/O."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct, field

from swarm_protocol.messages import Config, ConfigValue

Number = int | float


class Field(Struct, frozen=True, omit_defaults=True):
    """A configuration field that may be set, and to what.

    `low` and `high` bound a number, both included; `choices` are the strings that a list may hold.
    """

    type: Literal["int", "float", "bool", "strings"]
    default: ConfigValue
    low: Number | None = None
    high: Number | None = None
    choices: tuple[str, ...] = ()


class AllowedDataset(Struct, frozen=True):
    """A dataset that passed the gate.

    `by_index` is false for generators that keep a list as long as their size: their entries are
    made from a seed of their own instead of an index (`swarm_tasks.child`).
    """

    name: str
    category: str
    by_index: bool
    fields: Mapping[str, Field]


class Measured(Struct, frozen=True, omit_defaults=True):
    """One dataset's line in `allowlist.json`: the verdict, its reasons and its key figures."""

    allowed: bool
    category: str
    reasons: dict[str, str]
    figures: dict[str, bool | int | float | str | None]
    by_index: bool = True
    fields: dict[str, Field] = field(default_factory=dict)


class GateResult(Struct, frozen=True):
    """The whole of `allowlist.json`."""

    generator: str
    datasets: dict[str, Measured]


def read_gate_result(raw: bytes) -> GateResult:
    """Return the decoded `allowlist.json`. Raises msgspec.ValidationError."""
    return msgspec.json.decode(raw, type=GateResult)


class LevelRecord(Struct, frozen=True):
    """The whole of `levels.json`: for each dataset its levels, the easiest first."""

    generator: str
    levels: dict[str, list[Config]]
