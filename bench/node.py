"""`make bench-node`: our training step against trl's GRPOTrainer, in time and memory.

Both train the same model on the same questions with the same rewards, by turns in one run, each in
a process of its own. `python -m bench.node small` measures one size. All of them together are
written, with what a step takes longer on a node that is joined than on one alone.
"""

import os
import sys

from bench.node_compare import compare, print_comparisons
from bench.node_sizes import SIZES
from bench.node_swarm import measure_swarm_overhead
from bench.report import Target, print_targets, write_results

TARGETS = [
    Target(f"{figure}_vs_trl_{size}", f"{words} : trl's, {size}", "", at_most=bound)
    for figure, words, bound in (("step_ratio", "step", 0.5), ("memory_ratio", "peak memory", 0.7))
    for size in SIZES
]
# What a breakdown calls `swarm`; the rest of what joining costs is written beside it.
SWARM = Target("joined_swarm_share", "share of a joined node's step spent on the swarm", "", 0.03)
# No downloads, no bars, no warnings of trl's about transformers.
QUIET = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore::FutureWarning"}


def main(names: list[str]) -> int:
    """Measure the named sizes, print and write the figures; 1 when a promise is missed."""
    os.environ |= QUIET
    found = {name: compare(SIZES[name]) for name in names}
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
    whole = names == list(SIZES)
    if whole:
        figures |= measure_swarm_overhead()
    kept = print_targets(
        figures, [target for target in [*TARGETS, SWARM] if target.figure in figures]
    )
    if whole:
        print(f"written to {write_results('node', figures)}")  # noqa: T201 - a command's output
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SIZES)))
