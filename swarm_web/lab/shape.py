"""What the site reads of a `report.json` and a `summary.json`; pure.

`swarm-node lab report` and `lab summary` write them, and their module `lab.report.shape` says what
each field means. Fields that no page shows are left out here and ignored.
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
# What counts as beyond chance.
LEVEL = 0.05


class Estimate(Struct, frozen=True):
    """A mean over the paired seeds, with its interval at 95 % where there are seeds enough."""

    value: float
    low: float | None = None
    high: float | None = None


class Curve(Struct, frozen=True):
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


class Curves(Struct, frozen=True):
    """An arm's curves; None where nothing was measured."""

    own: Curve
    cumulative: Curve
    held_out: Curve | None = None
    length: Curve | None = None
    reflection: Curve | None = None
    poisoned: Curve | None = None

    def __post_init__(self) -> None:
        if min(self.own.rounds[0], self.cumulative.rounds[0]) < 1:
            raise ValueError("nodes earn rewards from round 1 on")


class Arm(Struct, frozen=True):
    """One arm: its means over the paired seeds, and its curves."""

    name: str
    settings: str
    nodes: int
    attackers: int
    own: Estimate
    training_set: Estimate
    held_out_area: Estimate | None
    held_out_final: Estimate | None
    take_off: float | None
    tokens: float
    bytes: float
    informative_in_set: float
    curves: Curves


class Comparison(Struct, frozen=True):
    """An arm against another one, paired by seed; `gain` is a ratio, 1.94 for +94 %.

    `gain` is None where the other arm earned nothing, ends of intervals where seeds are too few.
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


class Onset(Struct, frozen=True):
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


class GainAfter(Struct, frozen=True):
    """The gain over the baseline, had the runs ended after `rounds`; as in `Comparison`."""

    rounds: int
    gain: Ratio | None
    gain_low: Ratio | None
    gain_high: Ratio | None


class Horizons(Struct, frozen=True):
    """An arm's gain after each fifth of the rounds."""

    arm: str
    gains: list[GainAfter]


class Reached(Struct, frozen=True):
    """When an arm's held-out score is as high as the baseline's at the end.

    `runs` of the paired runs get there; `rounds` and `tokens` are medians, None if half do not.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class PaperArm(Struct, frozen=True):
    """An arm of the paper's controlled experiment."""

    name: str
    total: float
    gain: float


class RunFile(Struct, frozen=True):
    """A run: its file, and the SHA-256 of its lines."""

    arm: str
    seed: int
    file: str
    sha256: str


class Report(Struct, frozen=True):
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
    arms: list[Arm]
    comparisons: list[Comparison]
    onsets: list[Onset]
    paper: list[PaperArm]
    differences: list[str]
    commands: list[str]
    runs: list[RunFile]
    horizons: list[Horizons] = []
    reached: list[Reached] = []

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
    def gains(self) -> dict[str, Comparison]:
        """Each arm's comparison with the baseline in cumulative own reward."""
        return {
            each.arm: each
            for each in self.comparisons
            if each.outcome == "own" and each.group is None
        }


class Finding(Struct, frozen=True):
    """One comparison that answers a question, and whether it is as expected.

    `report` is the folder of the report that it is from, beside the summary. `holds` is None where
    nothing was expected.
    """

    report: str
    experiment: str
    phase: Phase
    expects: Expectation
    at_least: float | None
    holds: bool | None
    comparison: Comparison


class Answer(Struct, frozen=True):
    """What a summary says of one question; nothing was measured where there are no findings.

    `pending` comparisons were announced and are still to be measured.
    """

    figures: list[Finding] = []
    pending: int = 0
    confirmed_on_unseen: bool = False
