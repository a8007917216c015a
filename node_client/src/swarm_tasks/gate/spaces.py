"""Write how many questions the allowed datasets have: `python -m swarm_tasks.gate.spaces`.

Each dataset is measured with its default configuration, at each of its levels, and as configured in
the package's task mixes (`swarm_tasks.starter`). Run `python -m swarm_tasks.gate.levels` first.
"""

import sys

import msgspec

from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.allowlist import GENERATOR, allowed_datasets
from swarm_tasks.gate_records import PACKAGE, encode_record
from swarm_tasks.levels import level_record
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.spaces import MeasuredSpace, SpaceRecord, measure_space
from swarm_tasks.starter import DEMO_TASKS, YEAR_TASKS
from swarm_tasks.verifier import Verifier

_DRAWS, _SECONDS = 20_000, 2.0
# The package's mixes are measured longer, for a smaller error, because many seasons use them.
_DRAWS_STARTING, _SECONDS_STARTING = 100_000, 20.0


def measure_dataset(dataset: str, *, verifier: AnyVerifier) -> list[MeasuredSpace]:
    """Sample a dataset's questions in several configurations, and return the counts of each sample.

    The configurations are the default one, the dataset's levels, and those of the package's task
    mixes. A configuration is left out if the verifier refuses it or fails with it.
    """
    levels: list[Config] = [{}, *level_record().levels.get(dataset, [])]
    usual = [_measure(dataset, config, _DRAWS, _SECONDS, verifier=verifier) for config in levels]
    return [*filter(None, usual), *measure_starting(dataset, verifier=verifier)]


def measure_starting(dataset: str, *, verifier: AnyVerifier) -> list[MeasuredSpace]:
    """Sample a dataset's questions in each of its configurations in the package's task mixes.

    Returns the counts of each sample. A configuration is left out if the verifier refuses it or
    fails with it.
    """
    configs = [task.config for task in (*DEMO_TASKS, *YEAR_TASKS) if task.dataset == dataset]
    spaces = [
        _measure(dataset, config, _DRAWS_STARTING, _SECONDS_STARTING, verifier=verifier)
        for config in configs
    ]
    return [*filter(None, spaces)]


def _measure(
    dataset: str, config: Config, draws: int, seconds: float, *, verifier: AnyVerifier
) -> MeasuredSpace | None:
    """Return the counts of a configuration's sample; None if the verifier refuses it or fails.

    `draws` and `seconds` limit the sample (`measure_space`).
    """
    try:
        # So that starting the child and building the dataset do not count as measured time.
        verifier.sample_digests(dataset=dataset, config=config, seed=0, indices=[0])
        space = measure_space(dataset, config, verifier=verifier, draws=draws, seconds=seconds)
    except RefusedError as refusal:
        print(f"{dataset} {config}: {refusal}", file=sys.stderr)  # noqa: T201
        return None
    return MeasuredSpace(**msgspec.structs.asdict(space), config=config)


def main() -> None:
    """Measure how many questions each allowed dataset has, and write `spaces.json`."""
    with Verifier() as verifier:
        spaces = {}
        for dataset in sorted(allowed_datasets()):
            spaces[dataset] = measure_dataset(dataset, verifier=verifier)
            print(f"{dataset}: {len(spaces[dataset])} configurations", flush=True)  # noqa: T201
    out = PACKAGE / "spaces.json"
    out.write_bytes(encode_record(SpaceRecord(GENERATOR, spaces)))
    print(f"written to {out}")  # noqa: T201


if __name__ == "__main__":
    main()
