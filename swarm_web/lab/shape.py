"""The fields of a `report.json` and a `summary.json` that the site reads; pure.

`swarm-node lab report` and `lab summary` write them, and their module `lab.report.shape` documents
each field. Fields that no page shows are ignored.
"""

from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta, Struct

Phase = Literal["exploratory", "confirmatory"]
Expectation = Literal["more", "less", "no less", "nothing"]
Outcome = Literal[
    "own", "held_out_area", "held_out_final", "training_set", "forgetting", "drawdown", "poisoned"
]
Probability = Annotated[float, Meta(ge=0, le=1)]
Ratio = Annotated[float, Meta(ge=0)]
# Level of significance.
LEVEL = 0.05


class LabEstimate(Struct, frozen=True):
    """A mean over the paired seeds, with its 95 % interval if there are enough seeds."""

    value: float
    low: float | None = None
    high: float | None = None


class LabCurve(Struct, frozen=True):
    """A curve over rounds; `low` and `high` are empty where there are too few seeds for a band."""

    rounds: list[int]
    mean: list[float]
    low: list[float] = []
    high: list[float] = []

    def __post_init__(self) -> None:
        bands = {len(self.low), len(self.high)}
        if not self.rounds or len(self.mean) != len(self.rounds):
            raise ValueError("a curve has as many values as rounds, and one at least")
        if self.rounds[0] < 0 or any(a >= b for a, b in pairwise(self.rounds)):
            raise ValueError("a curve's rounds are in order, each once")
        if bands not in ({0}, {len(self.rounds)}):
            raise ValueError("a curve's band has both ends in each round, or none")


class LabCurves(Struct, frozen=True):
    """An arm's curves; None if nothing was measured."""

    own: LabCurve
    cumulative: LabCurve
    held_out: LabCurve | None = None
    length: LabCurve | None = None
    reflection: LabCurve | None = None
    poisoned: LabCurve | None = None

    def __post_init__(self) -> None:
        if min(self.own.rounds[0], self.cumulative.rounds[0]) < 1:
            raise ValueError("nodes earn rewards from round 1 on")


class LabArm(Struct, frozen=True):
    """One arm: its means over the paired seeds, and its curves."""

    name: str
    settings: str
    nodes: int
    attackers: int
    own: LabEstimate
    training_set: LabEstimate
    held_out_area: LabEstimate | None
    held_out_final: LabEstimate | None
    take_off: float | None
    tokens: float
    bytes: float
    informative_in_set: float
    curves: LabCurves


class LabComparison(Struct, frozen=True):
    """An arm against another one, paired by seed; `gain` is a ratio, 1.94 for +94 %.

    `gain` is None if the other arm's reward is 0, ends of intervals with too few seeds.
    """

    arm: str
    against: str
    outcome: Outcome
    group: str | None
    seeds: int
    gain: Ratio | None
    gain_low: Ratio | None
    gain_high: Ratio | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    p: Probability
    p_adjusted: Probability


class LabOnset(Struct, frozen=True):
    """An arm's difference from the baseline over rounds, with the band of chance around 0."""

    arm: str
    seeds: int
    rounds: list[int]
    difference: list[float]
    band: list[float]
    first: int | None
    stays: int | None

    def __post_init__(self) -> None:
        if not self.rounds or {len(self.difference), len(self.band)} != {len(self.rounds)}:
            raise ValueError("a difference and its band have a value for each round")


class LabGainAfter(Struct, frozen=True):
    """The gain over the baseline, had the runs ended after `rounds`; as in `LabComparison`."""

    rounds: int
    gain: Ratio | None
    gain_low: Ratio | None
    gain_high: Ratio | None


class LabHorizons(Struct, frozen=True):
    """An arm's gain after each fifth of the rounds."""

    arm: str
    gains: list[LabGainAfter]


class LabReached(Struct, frozen=True):
    """When an arm's held-out score is as high as the baseline's at the end.

    `runs` of the paired runs get there; `rounds` and `tokens` are medians, None if half do not.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class LabPaperArm(Struct, frozen=True):
    """An arm of the paper's controlled experiment."""

    name: str
    total: float
    gain: float


class LabRunFile(Struct, frozen=True):
    """A run: its file, and the SHA-256 of its lines."""

    arm: str
    seed: int
    file: str
    sha256: str


class PublishedReport(Struct, frozen=True):
    """A whole report. The first format is the only one so far."""

    format: Literal[1]
    name: str
    question: str
    phase: Phase
    design: str
    settings: str
    baseline: str
    rounds: int
    seeds: list[int]
    headline: str
    notes: list[str]
    arms: list[LabArm]
    comparisons: list[LabComparison]
    onsets: list[LabOnset]
    paper: list[LabPaperArm]
    differences: list[str]
    commands: list[str]
    runs: list[LabRunFile]
    horizons: list[LabHorizons] = []
    reached: list[LabReached] = []

    def __post_init__(self) -> None:
        names = {arm.name for arm in self.arms}
        compared = {
            *(each.arm for each in self.comparisons),
            *(each.arm for each in self.onsets),
            *(each.arm for each in self.horizons),
            *(each.arm for each in self.reached),
        }
        if len(names) < len(self.arms):
            raise ValueError("each arm has a name of its own")
        if not {self.baseline, *compared} <= names:
            raise ValueError("a report describes its baseline and every arm that it compares")
        if len({tuple(after.rounds for after in each.gains) for each in self.horizons}) > 1:
            raise ValueError("all arms have their gains after the same rounds")

    @property
    def gains(self) -> dict[str, LabComparison]:
        """Each arm's comparison with the baseline in cumulative own reward."""
        return {
            each.arm: each
            for each in self.comparisons
            if each.outcome == "own" and each.group is None
        }


class LabFinding(Struct, frozen=True):
    """One comparison that answers a question, and whether it is as expected.

    `report` is the folder of the report that it is from, beside the summary. `holds` is None if
    nothing was expected.
    """

    report: str
    experiment: str
    phase: Phase
    expects: Expectation
    at_least: float | None
    holds: bool | None
    comparison: LabComparison


class LabSummaryAnswer(Struct, frozen=True):
    """The findings about one question; none if nothing was measured.

    `pending` is the number of announced comparisons without a report.
    """

    figures: list[LabFinding] = []
    pending: int = 0
    confirmed_on_unseen: bool = False
