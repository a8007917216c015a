"""Test the command of `make bench-gpu` on a machine without a GPU."""

import os
import subprocess
import sys

import pytest

from bench.gpu.__main__ import NO_GPU, Options
from bench.report import PROJECT, RESULTS


def bench_gpu(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with all GPUs hidden."""
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu", *arguments],
        cwd=PROJECT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def modification_times() -> dict[str, int]:
    """Return the modification time of each result file."""
    return {path.name: path.stat().st_mtime_ns for path in RESULTS.iterdir()}


@pytest.mark.parametrize(
    ("options", "is_written"),
    [
        (Options(is_dry=False, seconds=1, only=()), True),
        (Options(is_dry=True, seconds=1, only=()), False),
        (Options(is_dry=False, seconds=1, only=("our step",)), False),
    ],
)
def test_results_are_written_only_if_all_figures_were_measured_on_a_gpu(
    options: Options, is_written: bool
) -> None:
    assert options.is_written is is_written


@pytest.mark.slow
def test_dry_run_executes_selected_sections_and_writes_no_results() -> None:
    before = modification_times()
    ran = bench_gpu(
        *("--dry-run", "--minutes", "30", "--only", "equality", "--only", "our step"),
        *("--only", "bfloat16", "--only", "the same step twice"),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Promised figures (dry run)" in ran.stdout
    assert modification_times() == before


@pytest.mark.slow
def test_command_without_a_gpu_exits_with_a_hint() -> None:
    ran = bench_gpu()
    assert ran.returncode == NO_GPU, ran.stderr
    assert "No GPU was found" in ran.stdout
    assert "--dry-run" in ran.stdout
