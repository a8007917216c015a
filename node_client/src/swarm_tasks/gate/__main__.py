"""Measure the installed generators and write the allow-list: `python -m swarm_tasks.gate`."""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from swarm_tasks.allowlist import gate_result
from swarm_tasks.child.generators import dataset_names, installed_generator
from swarm_tasks.gate.checks import fingerprint, measure_dataset
from swarm_tasks.gate_records import PACKAGE, GateResult, Measured, encode_record

_PROCESSES = 2
_ENTRIES, _ENTRIES_QUICK = 50, 10


def run_gate(names: Sequence[str], *, entries: int) -> GateResult:
    """Measure the datasets with `entries` entries each, print progress, and return the result."""
    _print(f"making entries of {len(names)} datasets under another hash seed ...")
    with _pool(hash_seed="1") as pool:
        foreign = dict(
            zip(names, pool.map(partial(fingerprint, count=entries), names), strict=True)
        )
    measured: dict[str, Measured] = {}
    with _pool(hash_seed="0") as pool:
        jobs = {name: pool.submit(measure_dataset, name, entries, foreign[name]) for name in names}
        for number, (name, job) in enumerate(jobs.items(), start=1):
            measured[name] = job.result()
            _print(f"[{number}/{len(names)}] {_describe(name, measured[name])}")
    return GateResult(installed_generator(), measured)


def merge_into(shipped: GateResult, measured: GateResult) -> GateResult:
    """Return `shipped` with the datasets of `measured`, which replace those of the same names.

    Raises ValueError if the results are from different versions of the library.
    """
    if shipped.generator != measured.generator:
        raise ValueError(f"the list is of {shipped.generator}, measured was {measured.generator}")
    return GateResult(shipped.generator, {**shipped.datasets, **measured.datasets})


def _pool(*, hash_seed: str) -> ProcessPoolExecutor:
    """Return a pool of new interpreters with one BLAS thread and the PYTHONHASHSEED `hash_seed`.

    This sets variables in this process's environment, which stay set.
    """
    os.environ.update(PYTHONHASHSEED=hash_seed, OPENBLAS_NUM_THREADS="1")
    return ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn"))


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _describe(name: str, line: Measured) -> str:
    if line.allowed:
        return f"{name}: allowed, settable: {', '.join(line.fields) or 'nothing'}"
    return f"{name}: refused ({'; '.join(f'{k}: {v}' for k, v in line.reasons.items())})"


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m swarm_tasks.gate", description=__doc__)
    parser.add_argument("--datasets", help="only these, separated by commas (default: all)")
    parser.add_argument("--out", type=Path, help="file to write (default: the package's own)")
    parser.add_argument(
        "--update", action="store_true", help="put these datasets' lines into the package's file"
    )
    parser.add_argument("--quick", action="store_true", help="10 entries a dataset, not 50")
    parsed = parser.parse_args(arguments)
    if parsed.datasets and parsed.out is None and not parsed.update:
        parser.error(
            "--datasets measures only a part of the list: name another file with --out, or put what"
            " was measured into the list with --update"
        )
    if parsed.update and (parsed.quick or parsed.out):
        parser.error("--update is for the package's own file and whole measurements")
    return parsed


def main(arguments: Sequence[str]) -> None:
    """Measure the datasets that the arguments select, and write the results to a file."""
    parsed = _parse_arguments(arguments)
    known = dataset_names()
    names = parsed.datasets.split(",") if parsed.datasets else known
    if unknown := sorted(set(names) - set(known)):
        sys.exit(f"{installed_generator()} has no dataset {', '.join(unknown)}")
    result = run_gate(names, entries=_ENTRIES_QUICK if parsed.quick else _ENTRIES)
    if parsed.update:
        result = merge_into(gate_result(), result)
    out = parsed.out or PACKAGE / "allowlist.json"
    out.write_bytes(encode_record(result))
    allowed = sum(line.allowed for line in result.datasets.values())
    _print(f"{allowed} of {len(result.datasets)} datasets are allowed; written to {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
