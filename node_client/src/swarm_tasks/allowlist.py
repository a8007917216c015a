"""Which datasets may be used, and with which configurations; reads only `allowlist.json`.

`python -m swarm_tasks.gate` writes `allowlist.json`. It measures every dataset of the installed
reasoning-gym (`docs/tasks.md`), and marks those that may be used as allowed.
"""

import functools
import math
from collections.abc import Mapping, Sequence

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config, ConfigValue, TaskChoice, TaskSpec
from swarm_tasks.gate_records import PACKAGE, Field, GateResult, Measured
from swarm_tasks.keyspace import Part, index_part

_encoder = msgspec.json.Encoder(order="sorted")


@functools.cache
def gate_result() -> GateResult:
    """Return the content of the package's `allowlist.json`."""
    return msgspec.json.decode((PACKAGE / "allowlist.json").read_bytes(), type=GateResult)


@functools.cache
def allowed_datasets() -> Mapping[str, Measured]:
    """Return the `allowlist.json` entry of every dataset that may be used, by name."""
    return {name: line for name, line in gate_result().datasets.items() if line.allowed}


GENERATOR: str = gate_result().generator


def check_config(dataset: str, config: Config) -> None:
    """Check that a dataset may be used with a configuration.

    Raises RefusedError: TASK_DATASET for a dataset that is not allowed, TASK_CONFIG for a field
    that may not be set, a value that the field may not have, or a `min_x` above its `max_x`.
    """
    allowed = allowed_datasets().get(dataset)
    if allowed is None:
        raise RefusedError(ErrorCode.TASK_DATASET, _explain_exclusion(dataset))
    for name, value in config.items():
        field = allowed.fields.get(name)
        if field is None:
            settable = ", ".join(sorted(allowed.fields)) or "none"
            raise _refuse_config(f"{dataset} has no settable field {name!r} (settable: {settable})")
        if not _fits(field, value):
            value_text = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:77]}..."
            raise _refuse_config(f"{dataset}.{name} is {value_text}, allowed is {describe(field)}")
    _check_pairs(dataset, allowed.fields, config)


def is_allowed(dataset: str, config: Config) -> bool:
    """Return whether a dataset may be used with a configuration (`check_config`)."""
    try:
        check_config(dataset, config)
    except RefusedError:
        return False
    return True


def check_spec(spec: TaskSpec) -> None:
    """Check that a spec's dataset and configuration are allowed and its generator is GENERATOR.

    Raises RefusedError: TASK_DATASET, TASK_CONFIG or TASK_FOREIGN (another generator version).
    """
    _check_encoded(spec.dataset, _encoder.encode(spec.config))
    _check_generator(spec)


def check_training_spec(spec: TaskSpec, *, seed: int, tasks: Sequence[TaskChoice]) -> None:
    """Check that a spec is a training task of the season with this seed and task mix.

    This does not check whether the question's hash is in the training part of the keyspace. Callers
    that generate the question check the hash with `question_part`.

    Raises RefusedError: TASK_DATASET, TASK_CONFIG (not exactly the season's configuration),
    TASK_FOREIGN (another seed or generator) or TASK_INDEX (an index outside the training part).
    """
    choices = [choice for choice in tasks if choice.dataset == spec.dataset]
    if not choices:
        raise RefusedError(
            ErrorCode.TASK_DATASET, f"{spec.dataset!r} is not in the season's task mix"
        )
    config = _encoder.encode(spec.config)
    _check_encoded(spec.dataset, config)
    # Compared as JSON, in which `1` and `true` differ as they do not in Python.
    if all(_encoder.encode(choice.config) != config for choice in choices):
        raise _refuse_config(f"the season gives {spec.dataset} another configuration")
    if spec.seed != seed:
        raise RefusedError(
            ErrorCode.TASK_FOREIGN, f"the seed is {spec.seed}, but the season's is {seed}"
        )
    _check_generator(spec)
    if index_part(spec.index) is not Part.TRAINING:
        raise RefusedError(
            ErrorCode.TASK_INDEX, f"index {spec.index} is not in the training part of the range"
        )


def is_training_spec(spec: TaskSpec, *, seed: int, tasks: Sequence[TaskChoice]) -> bool:
    """Return whether `check_training_spec` accepts a spec."""
    try:
        check_training_spec(spec, seed=seed, tasks=tasks)
    except RefusedError:
        return False
    return True


def describe(field: Field) -> str:
    """Return in words which values a field may have."""
    match field.type:
        case "bool":
            return "true or false"
        case "strings":
            return f"a non-empty list of different ones of {', '.join(field.choices)}"
        case _:
            kind = "a whole number" if field.type == "int" else "a number"
            return f"{kind} from {field.low} to {field.high}"


def _check_generator(spec: TaskSpec) -> None:
    if spec.generator != GENERATOR:
        raise RefusedError(
            ErrorCode.TASK_FOREIGN,
            f"generated with {spec.generator!r}, but this side has {GENERATOR!r}",
        )


def _explain_exclusion(dataset: str) -> str:
    line = gate_result().datasets.get(dataset)
    if line is None:
        return f"{GENERATOR} has no dataset {dataset[:64]!r}"
    return f"{dataset} is not allowed: {'; '.join(line.reasons.values())}"


def _refuse_config(message: str) -> RefusedError:
    return RefusedError(ErrorCode.TASK_CONFIG, message)


def _fits(field: Field, value: ConfigValue) -> bool:
    match field.type:
        case "bool":
            return isinstance(value, bool)
        case "strings":
            return (
                isinstance(value, list)
                and 0 < len(value) == len(set(value))
                and set(value) <= set(field.choices)
            )
        case "int" | "float":
            numbers = (int,) if field.type == "int" else (int, float)
            return (
                isinstance(value, numbers)
                and not isinstance(value, bool)
                and field.low is not None
                and field.high is not None
                and field.low <= value <= field.high
            )


def _check_pairs(dataset: str, fields: Mapping[str, Field], config: Config) -> None:
    """Raise RefusedError TASK_CONFIG if a `min_x` is above its `max_x`.

    A field that is not in `config` has its default.
    """
    for low_name, low_field in fields.items():
        high_name = low_name.replace("min_", "max_", 1)
        high_field = fields.get(high_name)
        if high_name == low_name or high_field is None:
            continue
        low = config.get(low_name, low_field.default)
        high = config.get(high_name, high_field.default)
        if _number(low) > _number(high):
            raise _refuse_config(
                f"{dataset}.{low_name} is {low}, above {high_name} which is {high}"
            )


def _number(value: ConfigValue) -> float:
    return value if isinstance(value, int | float) else math.nan


@functools.lru_cache(maxsize=256)
def _check_encoded(dataset: str, config: bytes) -> None:
    """Call `check_config` with a JSON configuration. Cached, because specs often repeat one."""
    check_config(dataset, msgspec.json.decode(config))
