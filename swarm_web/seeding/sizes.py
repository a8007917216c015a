"""How much demo data there may be; pure."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Size:
    """`seats` are places in closed rounds, all rounds together: each gives one row of rewards.

    `questions` stand in each round, and rounds follow each other by `cadence`. Of the last season
    there are `archived` rollouts, `exchanges` between two nodes in each of the last hours, and
    `points` of training for each node.
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
    def rounds_a_season(self) -> int:
        """How many rounds each season has."""
        return self.rounds // self.seasons

    @property
    def habit(self) -> float:
        """In how many rounds a node takes part, on average."""
        return self.seats / self.nodes


SIZES = {
    "small": Size(
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
    "medium": Size(
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
    "large": Size(
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
