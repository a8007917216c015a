"""`make bench-gpu`: compare a node's training on a GPU with the CPU and with trl.

Needs neither a database nor a model hub: weights are random, or those that ship with the client.
The sections, such as a measurement at one size, run in a separate process, so that a failed section
costs only its own figures.
The exit status is 1 if a section failed or a target was missed, and 3 without a GPU.

`--dry-run` runs all sections on the CPU, with tiny models, and writes nothing.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.gpu.device import Device, is_gpu_there, why_no_gpu
from bench.gpu.figures import PRODUCT, print_figures, targets
from bench.gpu.plan import (
    BFLOAT16,
    MEASUREMENTS,
    Section,
    plan,
    sizes_for_dry_run,
    sizes_for_gpu,
)
from bench.gpu.sections import SectionResults, run_sections
from bench.node.pace import QUIET
from bench.report import print_targets, write_results

MINUTES = 8.0
NO_GPU = 3
# Maximum share of the time for one section, so that one that hangs leaves time for the others.
_MAX_SHARE = 0.3
_DEVICE_SECTION = "the device"
# Forbids TF32, which a container's environment may allow, in float32 products.
_FLOAT32 = {"NVIDIA_TF32_OVERRIDE": "0", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0"}
# Variables that a launcher of distributed training sets; they make trl wait for other processes.
_LAUNCHER_PREFIX = "ACCELERATE_"
_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_MUCH_HELD_BYTES = 1e9


@dataclass(frozen=True)
class Options:
    """The options of the command.

    `seconds` limits the whole run. `only` names the measurements to make; if empty, all are made.
    """

    is_dry: bool
    seconds: float
    only: tuple[str, ...]

    @property
    def device(self) -> str:
        """The torch device to measure on."""
        return "cpu" if self.is_dry else "cuda"

    @property
    def is_written(self) -> bool:
        """Whether to write the figures: true only for a run of all measurements on a GPU."""
        return not (self.is_dry or self.only)

    @property
    def title_suffix(self) -> str:
        """What titles of tables end with: a remark for a dry run, otherwise nothing."""
        return " (dry run)" if self.is_dry else ""


def main(arguments: list[str]) -> int:
    """Measure, print and write the figures, and return the exit status (see the module)."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.gpu")
    parser.add_argument("--dry-run", action="store_true", help="on the CPU, tiny, nothing written")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"at most; {MINUTES:g}")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[measurement.name for measurement in MEASUREMENTS],
        help="one measurement, or several by several --only; then nothing is written",
    )
    parsed = parser.parse_args(arguments)
    options = Options(parsed.dry_run, parsed.minutes * 60, tuple(parsed.only))
    _set_environment(options)
    if not (options.is_dry or is_gpu_there()):
        _report_missing_gpu()
        return NO_GPU
    return measure(options)


def measure(options: Options) -> int:
    """Measure, print and write the figures; return 1 if a section failed or a target was missed.

    In a dry run, missed targets do not count.
    """
    begin = time.monotonic()
    run = partial(
        run_sections, until=begin + options.seconds, longest_s=options.seconds * _MAX_SHARE
    )
    inspected = run(
        [Section(_DEVICE_SECTION, "bench.gpu.device:inspect_device", {"device": options.device})]
    )
    if inspected.failed:
        return 1
    device: Device = inspected.results[_DEVICE_SECTION]
    _describe(device)
    with tempfile.TemporaryDirectory() as folder:
        sections = _choose(options, device, Path(folder))
        outcome = run(sections)
    figures = {PRODUCT.figure: device.product_error, **name_figures(sections, outcome)}
    kept = _report(options, device, figures, outcome)
    _print(f"{time.monotonic() - begin:.0f} s in all")
    return 0 if (kept or options.is_dry) and not outcome.failed else 1


def _choose(options: Options, device: Device, folder: Path) -> list[Section]:
    """Return the sections for this device; models are written to `folder`."""
    measurements = [
        measurement
        for measurement in MEASUREMENTS
        if (not options.only or measurement.name in options.only)
        and (device.has_bf16 or measurement != BFLOAT16)
    ]
    sizes = sizes_for_dry_run() if options.is_dry else sizes_for_gpu(has_bf16=device.has_bf16)
    return list(plan(sizes, measurements, device=options.device, folder=folder))


def _report(
    options: Options, device: Device, figures: dict[str, float], outcome: SectionResults
) -> bool:
    """Print the figures, and write them if `is_written`; return whether all targets are met."""
    print_figures(figures, title=f"{device.description}{options.title_suffix}")
    kept = print_targets(figures, targets(figures), title=f"Promised figures{options.title_suffix}")
    for name, why in outcome.failed.items():
        _print(f"FAILED {name}: {why}")
    if options.is_dry:
        _print("A dry run: nothing of this is about a GPU, and nothing is written.")
    if options.is_written:
        # A reader of the results must see why figures are missing.
        missing = {"failed": outcome.failed} if outcome.failed else {}
        path = write_results("gpu", {**figures, **missing}, accelerator=device.description)
        _print(f"written to {path}")
    return kept


def name_figures(sections: Sequence[Section], outcome: SectionResults) -> dict[str, float]:
    """Return the figures of all sections; each name ends with the name of its section's size."""
    return {
        f"{name}_{section.size}": value
        for section in sections
        for name, value in outcome.results.get(section.name, {}).items()
    }


def _set_environment(options: Options) -> None:
    """Set the environment for this process and those it starts: one GPU, no TF32, no downloads.

    Also removes the variables with which launchers configure distributed training.
    """
    os.environ |= QUIET | _FLOAT32
    if options.is_dry:  # tiny models are slower with several threads
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # trl takes all GPUs that it sees, and then refuses to train on several.
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    for name in list(os.environ):
        if name.startswith(_LAUNCHER_PREFIX) or name in _LAUNCHER:
            del os.environ[name]


def _describe(device: Device) -> None:
    _print(f"{device.description}. TF32 is off, nothing is compiled, no CUDA graphs, no vLLM.")
    if not device.has_bf16:
        _print("It has no bfloat16: that is left out, and the large size is measured in float32.")
    if device.held_bytes > _MUCH_HELD_BYTES:
        _print(
            f"Others hold {device.held_bytes / 1e9:.1f} GB of its memory, and may slow it: end "
            "them (nvidia-smi lists them), or choose another GPU by CUDA_VISIBLE_DEVICES."
        )


def _report_missing_gpu() -> None:
    """Print that there is no GPU, what to do, and what would be measured."""
    _print(f"No GPU was found. {why_no_gpu()}")
    _print("What would be measured, at two sizes (hidden 128 × 4 layers, Qwen2.5-0.5B's shape):")
    for measurement in MEASUREMENTS:
        _print(f"- {measurement.name}: {measurement.label}")
    _print(
        "`python -m bench.gpu --dry-run` does all of it on the CPU, in a minute, with tiny models."
    )


def _print(text: str) -> None:
    Console().print(text, highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
