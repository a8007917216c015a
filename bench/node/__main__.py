"""`make bench-node`: compare our training step with trl's GRPOTrainer, in time and memory.

Both train the same model on the same questions with the same rewards. They take turns in one run,
each in its own process. `python -m bench.node small` measures one size. A run of all sizes also
measures how much longer a step takes on a node that has joined a swarm than on a node that trains
alone, and writes the results.
"""

import os
import sys
import tempfile
from pathlib import Path

from bench.node.compare import TrainerComparison, compare, print_comparisons, ratio_targets
from bench.node.model import build_model
from bench.node.pace import QUIET
from bench.node.sizes import SIZES, Size
from bench.node.swarm import measure_swarm_overhead
from bench.report import Target, conclude, print_targets

# A turn counts if other processes used at most this share of the machine's CPU time during it.
QUIET_SHARE = 0.05
# The first is the part of a step that its breakdown calls `swarm`, the second the whole cost of
# joining.
SWARM = Target("joined_swarm_share", "share of a joined node's step spent on the swarm", "", 0.03)
JOINED = Target("joined_cpu_overhead", "processor time that joining adds to a step", "", 0.04)
TARGETS = [*ratio_targets(SIZES), SWARM, JOINED]


def main(names: list[str]) -> int:
    """Measure the named sizes, print the figures, and write them if all sizes are named.

    Returns 1 if a target is missed.
    """
    os.environ |= QUIET
    found = {name: compare_on_cpu(SIZES[name]) for name in names}
    print_comparisons(found)
    figures: dict[str, float] = {}
    for name, comparison in found.items():
        figures[f"step_ratio_vs_trl_{name}"] = comparison.step_ratio
        figures[f"memory_ratio_vs_trl_{name}"] = comparison.memory_ratio
        figures[f"step_s_{name}"] = comparison.ours_s
        figures[f"floor_s_{name}"] = comparison.floor_s
        figures[f"quiet_turns_{name}"] = comparison.quiet_turns
        figures |= {f"{part}_s_{name}": seconds for part, seconds in comparison.parts.items()}
        figures[f"memory_gb_{name}"] = comparison.ours_bytes / 1e9
    if names == list(SIZES):
        return conclude("node", figures | measure_swarm_overhead(), TARGETS)
    targets = [target for target in TARGETS if target.figure in figures]
    return 0 if print_targets(figures, targets) else 1


def compare_on_cpu(size: Size) -> TrainerComparison:
    """Compare our trainer with trl's on the CPU, with a model that has random weights."""
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(size, Path(folder) / "model")
        return compare(size, model=model, device="cpu", max_foreign_share=QUIET_SHARE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SIZES)))
