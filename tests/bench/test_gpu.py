"""The command of `make bench-gpu`, on a machine without a GPU."""

import os
import subprocess
import sys

import pytest

from bench.gpu import NO_GPU, Options
from bench.report import PROJECT, RESULTS


def bench_gpu(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where no GPU is to be seen."""
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu", *arguments],
        cwd=PROJECT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def written() -> dict[str, int]:
    """When each of the results was written."""
    return {path.name: path.stat().st_mtime_ns for path in RESULTS.iterdir()}


@pytest.mark.parametrize(
    ("options", "is_written"),
    [
        (Options(is_dry=False, seconds=1, only=()), True),
        (Options(is_dry=True, seconds=1, only=()), False),
        (Options(is_dry=False, seconds=1, only=("our step",)), False),
    ],
)
def test_only_all_figures_of_a_gpu_are_written(options: Options, is_written: bool) -> None:
    assert options.is_written is is_written


@pytest.mark.slow
def test_a_dry_run_goes_through_all_sections_of_our_own_and_writes_nothing() -> None:
    before = written()
    ran = bench_gpu(
        *("--dry-run", "--minutes", "30", "--only", "equality", "--only", "our step"),
        *("--only", "bfloat16", "--only", "the same step twice"),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Promised figures (dry run)" in ran.stdout
    assert written() == before


@pytest.mark.slow
def test_without_a_gpu_it_ends_with_what_helps() -> None:
    ran = bench_gpu()
    assert ran.returncode == NO_GPU, ran.stderr
    assert "No GPU was found" in ran.stdout
    assert "--dry-run" in ran.stdout
