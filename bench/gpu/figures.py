"""The figures of `make bench-gpu`: their labels and targets."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.node.compare import ratio_targets
from bench.report import Target, print_table

SIZES = ("base", "small", "large")
_CAPTION = (
    "base: the shipped base `small`, trained; small: hidden 128 × 4 layers; large: Qwen2.5-0.5B's "
    "shape; both with random weights"
)


@dataclass(frozen=True)
class Figure:
    """A figure that is measured for each size; `at_most` is its target, if it has one.

    Its name in the results is `name`, an underscore and the size.
    """

    name: str
    label: str
    unit: str = ""
    at_most: float | None = None


# Ten times the difference between float32 and float64 on a CPU. TF32 would exceed it: its rounding
# error is about 1e-3. The bounds of bfloat16 are about four times its differences on a CPU.
_ROUNDING = 1e-4

FIGURES = (
    Figure("loss_difference", "float32: loss, relative difference", "", _ROUNDING),
    Figure("grad_norm_difference", "float32: gradient's norm, relative difference", "", _ROUNDING),
    Figure("gradient_difference", "float32: gradients' difference, relative", "", _ROUNDING),
    Figure("logprob_difference", "float32: log-probs, largest difference", "", _ROUNDING),
    Figure("greedy_equal_tokens", "float32: share of greedy tokens that are the same"),
    Figure("greedy_preference", "float32: CPU's preference where they part", "", _ROUNDING),
    Figure("bf16_loss_difference", "bfloat16: loss, relative difference", "", 0.03),
    Figure("bf16_grad_norm_difference", "bfloat16: gradient's norm, relative difference", "", 0.02),
    Figure("bf16_gradient_difference", "bfloat16: gradients' difference, relative", "", 0.1),
    Figure("bf16_logprob_difference", "bfloat16: log-probs, largest difference", "", 0.1),
    Figure("repeat_equal_weights", "the same step twice: share of equal weights"),
    Figure(
        "repeat_grad_norm_difference", "the same step twice: gradient's norm, relative difference"
    ),
    Figure("step_s", "our step, median", "s"),
    Figure("generate_s", "  of it generate", "s"),
    Figure("score_s", "  score", "s"),
    Figure("forward_s", "  forward", "s"),
    Figure("backward_s", "  backward", "s"),
    Figure("optimizer_s", "  optimizer", "s"),
    Figure("generated_tokens_per_s", "tokens generated", "1/s"),
    Figure("trained_tokens_per_s", "tokens trained on, of the update's time", "1/s"),
    Figure("memory_gb", "our peak memory, tensors", "GB"),
    Figure("update_budget", "share of micro_batch_tokens that fitted"),
    Figure("sampling_budget", "share of a batch of samples that fitted"),
    Figure("step_by_turns_s", "our step, by turns with trl", "s"),
    Figure("trl_step_s", "trl's step", "s"),
    Figure("floor_s", "floor: all matrix products", "s"),
    Figure("memory_by_turns_gb", "our peak memory, by turns with trl", "GB"),
    Figure("trl_memory_gb", "trl's peak memory", "GB"),
)
PRODUCT = Target("float32_product_error", "a product in float32 (TF32 is off): error", "", 1e-4)


def targets(figures: Mapping[str, object]) -> list[Target]:
    """Return the targets of those figures that were measured."""
    of_sizes = (
        Target(f"{figure.name}_{size}", f"{figure.label}, {size}", figure.unit, figure.at_most)
        for figure in FIGURES
        if figure.at_most is not None
        for size in SIZES
    )
    promised = (PRODUCT, *of_sizes, *ratio_targets(SIZES))
    return [target for target in promised if target.figure in figures]


def print_figures(figures: Mapping[str, float], *, title: str) -> None:
    """Print a table of the measured figures with a column for each size."""
    rows = []
    for figure in FIGURES:
        values = [figures.get(f"{figure.name}_{size}") for size in SIZES]
        if any(value is not None for value in values):
            cells = ("" if value is None else f"{value:,.3g}" for value in values)
            rows.append((figure.label, *cells, figure.unit))
    headings = ("figure", *SIZES, "unit")
    print_table(title, headings, rows, left=("figure", "unit"), caption=_CAPTION, width=110)
