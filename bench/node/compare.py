"""Compare our trainer's steps with trl's on the same model, and print the comparison."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from bench.node.floor import floor_seconds
from bench.node.pace import TrainerProcess, Turn, trainer_process
from bench.node.sizes import PATIENCE, Size
from bench.report import Target, print_table

PARTS = ("generate", "score", "forward", "backward", "optimizer", "swarm")


@dataclass(frozen=True)
class TrainerComparison:
    """Our trainer compared with trl's trainer at one size, by seconds per step and peak memory.

    `ours_s` and `trl_s` are medians over the quiet turns (see `compare`), and `parts` are means of
    the parts of our step. `floor_s` is the least time that the step's matrix products can take.
    """

    ours_s: float
    trl_s: float
    ours_bytes: int
    trl_bytes: int
    parts: dict[str, float]
    floor_s: float
    quiet_turns: int

    @property
    def step_ratio(self) -> float:
        """Seconds per step of our trainer, divided by the seconds per step of trl's trainer."""
        return self.ours_s / self.trl_s

    @property
    def memory_ratio(self) -> float:
        """Peak memory of our trainer, divided by the peak memory of trl's trainer."""
        return self.ours_bytes / self.trl_bytes


def compare(size: Size, *, model: Path, device: str, max_foreign_share: float) -> TrainerComparison:
    """Compare our trainer with trl's, which take turns, each in its own process.

    A turn is quiet if other processes use at most the fraction `max_foreign_share` of the machine's
    CPU time while it runs. Our turn and trl's count only if both are quiet. Raises
    IsolatedProcessError if a trainer fails, and RuntimeError if no pair of turns was quiet.
    """
    with (
        trainer_process("bench.node.trl:run_trl", size, model, device) as trl,
        trainer_process("bench.node.ours:run_ours", size, model, device) as ours,
    ):
        theirs, mine = _take_turns(size, trl, ours, max_foreign_share=max_foreign_share)
    if not theirs or not mine:
        raise RuntimeError("other processes kept the machine busy: try again when it is quiet")
    return TrainerComparison(
        ours_s=median(turn.seconds for turn in mine),
        trl_s=median(turn.seconds for turn in theirs),
        ours_bytes=mine[-1].peak_bytes,
        trl_bytes=theirs[-1].peak_bytes,
        parts={part: fmean(turn.parts.get(part, 0.0) for turn in mine) for part in PARTS},
        floor_s=floor_seconds(size, device),
        quiet_turns=min(len(theirs), len(mine)),
    )


def ratio_targets(sizes: Iterable[str]) -> list[Target]:
    """Return the targets for the ratios of TrainerComparison, at the sizes with these names."""
    return [
        Target(f"{figure}_vs_trl_{size}", f"{words} : trl's, {size}", "", bound)
        for figure, words, bound in (
            ("step_ratio", "step", 0.5),
            ("memory_ratio", "peak memory", 0.7),
        )
        for size in sizes
    ]


def _take_turns(size: Size, *sides: TrainerProcess, max_foreign_share: float) -> list[list[Turn]]:
    """Let the trainers take turns, and return each trainer's quiet turns.

    A turn is kept only if the other trainer's turn beside it is quiet too. The trainers stop after
    `size.turns` kept turns each, or after PATIENCE times `size.turns` turns each.
    """
    for side in sides:
        side.await_ready()
    for side in sides:
        for _ in range(size.warm_up_turns):
            side.take_turn()
    quiet: list[list[Turn]] = [[] for _ in sides]
    for _ in range(size.turns * PATIENCE):
        turns = [side.take_turn() for side in sides]
        if all(turn.foreign_share <= max_foreign_share for turn in turns):
            for kept, turn in zip(quiet, turns, strict=True):
                kept.append(turn)
        if len(quiet[0]) == size.turns:
            break
    return quiet


def print_comparisons(comparisons: dict[str, TrainerComparison]) -> None:
    """Print a table: for each size both trainers' steps, and the parts of our trainer's step."""
    headings = ("size", "trl", "ours", "ratio", *PARTS, "floor", "trl GB", "ours GB", "ratio")
    rows = [
        (
            name,
            f"{found.trl_s:.3f}",
            f"{found.ours_s:.3f}",
            f"{found.step_ratio:.2f}",
            *(f"{found.parts[part]:.3f}" for part in PARTS),
            f"{found.floor_s:.3f}",
            f"{found.trl_bytes / 1e9:.2f}",
            f"{found.ours_bytes / 1e9:.2f}",
            f"{found.memory_ratio:.2f}",
        )
        for name, found in comparisons.items()
    ]
    print_table("One step, medians in seconds", headings, rows, width=150)
