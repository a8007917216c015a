"""The plan of `make bench-gpu`: model sizes, and a section for each measurement at each size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bench.node.sizes import SIZES, TEXT_TOKENS, Size

# A base that ships with the client: its greedy answers are text, not one token again and again.
BASE = "small"


# A model size by name, and the same one with less work, for comparisons with the CPU or float32.
Sizes = Mapping[str, tuple[Size, Size]]


@dataclass(frozen=True)
class Section:
    """One piece of work in the isolated process, such as a measurement at one size.

    `run` is MODULE:FUNCTION, called with `arguments`. A measurement returns a dict of figures, and
    `size` is the name of its size; otherwise `size` is empty.
    """

    name: str
    run: str
    arguments: dict[str, Any]
    size: str = ""


@dataclass(frozen=True)
class Measurement:
    """A measurement made at each size. `run` is MODULE:FUNCTION; `label` says what it measures."""

    name: str
    run: str
    label: str


EQUALITY = Measurement(
    "equality",
    "bench.gpu.exact:compare_with_cpu",
    "in float32, TF32 off, the same weights and rows as on the CPU: loss, gradient, log-probs, "
    "greedy samples",
)
BFLOAT16 = Measurement(
    "bfloat16",
    "bench.gpu.exact:compare_bf16",
    "weights in halves and products in bfloat16, against float32: loss, gradient, log-probs",
)
REPEAT = Measurement(
    "the same step twice",
    "bench.gpu.exact:repeat_step",
    "the share of weights that are the same to the bit",
)
PACE = Measurement(
    "our step",
    "bench.gpu.speed:measure_pace",
    "seconds and their parts, tokens a second in generation and in the update, peak memory",
)
TRL = Measurement(
    "beside trl",
    "bench.gpu.speed:compare_with_trl",
    "time and peak memory of a step beside trl's GRPOTrainer, by turns",
)
MEASUREMENTS = (EQUALITY, PACE, TRL, BFLOAT16, REPEAT)


def sizes_for_gpu(*, has_bf16: bool) -> Sizes:
    """Return the sizes for a GPU, `small` and `large`.

    `large` has Qwen2.5-0.5B's shape and work that fills a GPU. It uses bfloat16 if `has_bf16`,
    otherwise float32.
    """
    small, large = SIZES["small"], SIZES["large"]
    # The precision that `precision = "auto"` would choose.
    precision: Literal["fp32", "bf16"] = "bf16" if has_bf16 else "fp32"
    full = replace(large, prompts=8, completion_tokens=256, turns=3, precision=precision)
    return {"small": (replace(small, turns=4), small), "large": (full, replace(large, prompts=2))}


def sizes_for_dry_run() -> Sizes:
    """Return sizes so small that a step takes about a second on a CPU."""
    shape = (32, 64, 2, 2, 2)
    small = Size("small", *shape, TEXT_TOKENS, 2, "fp32", 1, 1, completion_tokens=8)
    large = Size("large", *shape, 4 * TEXT_TOKENS, 2, "bf16", 1, 1, completion_tokens=8)
    return {"small": (small, small), "large": (large, large)}


def plan(
    sizes: Sizes, measurements: Sequence[Measurement], *, device: str, folder: Path
) -> Iterator[Section]:
    """Yield the sections in the order to run them; the first ones write the models to `folder`."""
    models = {name: folder / name for name in sizes}
    for name, (size, _) in sizes.items():
        arguments = {"size": size, "folder": models[name]}
        yield Section(f"model, {name}", "bench.gpu.speed:make_model", arguments)
    for measurement in measurements:
        if measurement == EQUALITY:
            # This model's answers are short, so ask it more questions.
            _, small = sizes["small"]
            size = replace(small, name="base", prompts=4 * small.prompts)
            yield _section(measurement, size, model=Path(BASE), device=device)
        for name, (size, on_cpu) in sizes.items():
            fitting = on_cpu if measurement in (EQUALITY, BFLOAT16) else size
            yield _section(measurement, fitting, model=models[name], device=device)


def _section(measurement: Measurement, size: Size, *, model: Path, device: str) -> Section:
    return Section(
        name=f"{measurement.name}, {size.name}",
        run=measurement.run,
        arguments={"size": size, "model": model, "device": device},
        size=size.name,
    )
