"""Write the difficulty levels of the allowed datasets: `python -m swarm_tasks.gate.levels`.

A level is a configuration: the values that the number fields get when all attributes of the
library's curriculum are set to the same level. Levels outside the allow-list's ranges are left out,
so run the gate first.
"""

from collections.abc import Mapping
from typing import Any

from reasoning_gym.factory import CURRICULA

from swarm_protocol.messages import Config
from swarm_tasks.allowlist import allowed_datasets, is_allowed
from swarm_tasks.child.generators import installed_generator
from swarm_tasks.gate_records import PACKAGE, Field, LevelRecord, encode_record


def list_levels() -> LevelRecord:
    """Return the levels of every allowed dataset that has more than one allowed level."""
    levels = {
        name: _levels_of(name, dataset.fields)
        for name, dataset in sorted(allowed_datasets().items())
    }
    several = {name: configs for name, configs in levels.items() if len(configs) > 1}
    return LevelRecord(installed_generator(), several)


def _levels_of(name: str, fields: Mapping[str, Field]) -> list[Config]:
    make_curriculum = CURRICULA.get(name)
    if make_curriculum is None:
        return []
    curriculum: Any = make_curriculum()
    highest = max(len(attribute.levels) for attribute in curriculum.attributes.values())
    levels: list[Config] = []
    for level in range(highest):
        curriculum.set_global_level(level)
        config = _numbers_of(fields, curriculum.generate_configuration())
        if config not in levels and is_allowed(name, config):
            levels.append(config)
    return levels


def _numbers_of(fields: Mapping[str, Field], config: object) -> Config:
    """Return a configuration's settable number fields, each converted to the field's type."""
    kinds = {"int": int, "float": float}
    return {
        name: kinds[field.type](getattr(config, name))
        for name, field in fields.items()
        if field.type in kinds
    }


def main() -> None:
    """Write the levels to the package's `levels.json`."""
    out = PACKAGE / "levels.json"
    out.write_bytes(encode_record(list_levels()))
    print(f"written to {out}")  # noqa: T201


if __name__ == "__main__":
    main()
