"""Sizes of the demo data; no I/O."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class DemoSize:
    """How much demo data to write.

    All seasons together have `rounds` closed rounds with about `seats` seats in all, or fewer,
    because a round has no more seats than nodes have joined; each seat gives one row of the rewards
    download. Each round has `questions` questions, and `cadence` is the time between rounds. The
    last season has `archived` archived rollouts, at most `exchanges` rows of `Exchange` for each of
    the last 24 hours, and `points` training points for each node that trains.
    """

    nodes: int
    seasons: int
    rounds: int
    seats: int
    questions: int
    cadence: timedelta
    archived: int
    exchanges: int
    points: int

    @property
    def rounds_per_season(self) -> int:
        """Number of rounds in each season."""
        return self.rounds // self.seasons

    @property
    def rounds_per_node(self) -> float:
        """Mean number of rounds per node."""
        return self.seats / self.nodes


SIZES = {
    "small": DemoSize(
        nodes=24,
        seasons=2,
        rounds=40,
        seats=640,
        questions=16,
        cadence=timedelta(minutes=30),
        archived=120,
        exchanges=40,
        points=48,
    ),
    "medium": DemoSize(
        nodes=500,
        seasons=3,
        rounds=300,
        seats=30_000,
        questions=8,
        cadence=timedelta(minutes=20),
        archived=2_000,
        exchanges=600,
        points=48,
    ),
    "large": DemoSize(
        nodes=10_000,
        seasons=5,
        rounds=5_000,
        seats=1_025_000,
        questions=5,
        cadence=timedelta(minutes=8),
        archived=50_000,
        exchanges=8_000,
        points=24,
    ),
}
