"""Write the difficulty levels of the allowed datasets: `python -m swarm_tasks.gate.levels`.

A level is a configuration: the values of the number fields when all attributes of the library's
curriculum are set to one level. Levels outside the allow-list's ranges are left out, so run the
gate first.
"""

from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from reasoning_gym.factory import CURRICULA

from swarm_protocol.messages import Config
from swarm_tasks.allowlist import allowed_datasets, is_allowed
from swarm_tasks.child.generators import installed_generator
from swarm_tasks.gate_records import AllowedDataset, LevelRecord


def list_levels() -> LevelRecord:
    """Return the levels of every allowed dataset whose curriculum has more than one."""
    levels = {name: _levels_of(dataset) for name, dataset in sorted(allowed_datasets().items())}
    several = {name: configs for name, configs in levels.items() if len(configs) > 1}
    return LevelRecord(installed_generator(), several)


def _levels_of(dataset: AllowedDataset) -> list[Config]:
    make_curriculum = CURRICULA.get(dataset.name)
    if make_curriculum is None:
        return []
    curriculum: Any = make_curriculum()
    highest = max(len(attribute.levels) for attribute in curriculum.attributes.values())
    levels: list[Config] = []
    for level in range(highest):
        curriculum.set_global_level(level)
        config = _numbers_of(dataset, curriculum.generate_configuration())
        if config not in levels and is_allowed(dataset.name, config):
            levels.append(config)
    return levels


def _numbers_of(dataset: AllowedDataset, config: object) -> Config:
    """Return the values of the number fields that may be set, converted to the field's type."""
    kinds = {"int": int, "float": float}
    return {
        name: kinds[field.type](getattr(config, name))
        for name, field in dataset.fields.items()
        if field.type in kinds
    }


def main() -> None:
    """Run the command."""
    out = Path(str(resources.files("swarm_tasks").joinpath("levels.json")))
    encoded = msgspec.json.encode(list_levels(), order="sorted")
    out.write_bytes(msgspec.json.format(encoded, indent=1) + b"\n")
    print(f"written to {out}")  # noqa: T201


if __name__ == "__main__":
    main()
