"""The shipped allow-list agrees with what the gate measures."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from swarm_tasks.allowlist import gate_result
from swarm_tasks.gate.__main__ import merge_into
from swarm_tasks.gate.isolate import HungError, IsolatedError, run_isolated
from swarm_tasks.gate_records import GateResult, Measured

pytestmark = pytest.mark.slow

# One allowed by index, one refused because it executes its entry, one allowed by seed.
QUICK = ("gcd", "number_sorting", "acre")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    out = tmp_path_factory.mktemp("gate") / "allowlist.json"
    gate = [sys.executable, "-m", "swarm_tasks.gate"]
    subprocess.run(
        [*gate, "--datasets", ",".join(QUICK), "--out", str(out)], check=True, capture_output=True
    )
    return msgspec.json.decode(out.read_bytes(), type=GateResult)


def without_timings(line: Measured) -> tuple[object, ...]:
    figures = {name: value for name, value in line.figures.items() if "_ms_" not in name}
    return line.allowed, line.reasons, line.by_index, line.fields, figures


@pytest.mark.parametrize("dataset", QUICK)
def test_shipped_entry_agrees_with_a_new_measurement(fresh: GateResult, dataset: str) -> None:
    shipped = gate_result().datasets[dataset]
    assert without_timings(fresh.datasets[dataset]) == without_timings(shipped)


def test_gate_records_the_library_version(fresh: GateResult) -> None:
    assert fresh.generator == gate_result().generator


def test_dataset_has_reasons_exactly_if_it_is_refused() -> None:
    for name, line in gate_result().datasets.items():
        assert line.allowed is not bool(line.reasons), name


def test_gate_refuses_to_overwrite_the_shipped_list_with_a_partial_one(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "swarm_tasks.gate", "--datasets", "gcd"],
        capture_output=True,
        cwd=tmp_path,
    )
    assert refused.returncode == 2
    assert b"--out" in refused.stderr


def test_update_replaces_only_the_measured_datasets() -> None:
    shipped = gate_result()
    line = Measured(False, "arithmetic", {"slow_entries": "an entry took 4 s to make"}, {})
    updated = merge_into(shipped, GateResult(shipped.generator, {"gcd": line}))
    assert updated.datasets == {**shipped.datasets, "gcd": line}
    with pytest.raises(ValueError, match="other"):
        merge_into(shipped, GateResult("other", {}))


def spin() -> None:
    while True:
        pass


def test_isolated_hang_is_reported() -> None:
    with pytest.raises(HungError, match=r"0\.2 s"):
        run_isolated(0.2, spin)


def test_isolated_exception_is_reported() -> None:
    with pytest.raises(IsolatedError, match="ValueError: invalid literal"):
        run_isolated(5.0, int, "x")


def test_isolated_result_is_returned() -> None:
    assert run_isolated(5.0, sum, [1, 2]) == 3
