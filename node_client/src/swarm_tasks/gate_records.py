"""The records of `allowlist.json` and `levels.json`, which the gate writes; no I/O."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from swarm_protocol.messages import Config, ConfigValue

Number = int | float

# The folder of `allowlist.json`, `levels.json` and `spaces.json`.
PACKAGE = Path(__file__).parent


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


class Measured(Struct, frozen=True, omit_defaults=True):
    """The entry of a dataset in `allowlist.json`.

    `reasons` has the reasons against the dataset by code, `figures` measured values by name, and
    `fields` the configuration fields that may be set. `by_index` is false for a generator that
    cannot make the entry of an arbitrary index, because it makes a list of all entries in advance.
    A task's index is then added to the seed (`swarm_tasks.child.generators`).
    """

    allowed: bool
    category: str
    reasons: dict[str, str]
    figures: dict[str, bool | int | float | str | None]
    by_index: bool = True
    fields: dict[str, Field] = field(default_factory=dict)


class GateResult(Struct, frozen=True):
    """The content of `allowlist.json`: the measured datasets by name.

    `generator` is the library's name and version.
    """

    generator: str
    datasets: dict[str, Measured]


class LevelRecord(Struct, frozen=True):
    """The content of `levels.json`: the levels of each dataset that has several, as configurations.

    The easiest level comes first. `generator` is the library's name and version.
    """

    generator: str
    levels: dict[str, list[Config]]


def encode_record(record: Struct) -> bytes:
    """Return a record as sorted, indented JSON, so that two versions can be compared by diff."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=1) + b"\n"
