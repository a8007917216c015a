"""The fields of `report.json` and `summary.json` that the site reads; no I/O.

`swarm-node lab report` and `swarm-node lab summary` write these files. The client's module
`node_client.lab.report.shape` documents all fields of a report. Fields not listed here are ignored.
Rewards and scores are in [0, 1]; cumulative rewards are sums over rounds of the mean over nodes.
Intervals are at 95 %.
"""

from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta, Struct

Phase = Literal["exploratory", "confirmatory"]
Outcome = Literal[
    "own", "held_out_area", "held_out_final", "training_set", "forgetting", "drawdown", "poisoned"
]
Probability = Annotated[float, Meta(ge=0, le=1)]
Ratio = Annotated[float, Meta(ge=0)]
# Level of significance.
LEVEL = 0.05


class LabEstimate(Struct, frozen=True):
    """A mean over the paired seeds, and the ends of its interval, None if there are too few seeds.

    A seed is *paired* if all arms that have finished runs have one with this seed.
    """

    value: float
    low: float | None = None
    high: float | None = None


class LabCurve(Struct, frozen=True):
    """A curve over rounds: its mean at each round, and the ends of its interval.

    `low` and `high` are both empty if the curve has no intervals, for example because there are too
    few seeds. Otherwise they have one value for each round, as `mean` always has. Raises ValueError
    if a list has another length, or if `rounds` is empty, does not increase or begins below 0.
    """

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
    """An arm's curves; a curve is None if it was not measured, or is (nearly) 0 in all rounds.

    `own` is the own reward, `cumulative` its sum up to each round, `held_out` the score on the
    held-out set, and `length` the number of tokens in a completion. `reflection` and `poisoned` are
    shares of own completions: `reflection` of those with words that recheck, hesitate or explore
    (the largest of the three shares), `poisoned` of those with a text that an attacker planted. All
    but `cumulative` and `held_out` are averaged over ten rounds.
    """

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
    """One arm: its means over the paired seeds, and its curves.

    `settings` describes the arm's own settings in one line. `own` and `training_set` are the
    cumulative rewards of own rollouts and of training sets. `held_out_area` is the mean of the
    held-out curve, `held_out_final` its end; both are None with fewer than two evaluations.
    `take_off` is the median of the rounds from which runs' own reward stays above a threshold, None
    if half of the runs or more never get there. `tokens` (generated) and `bytes` (sent and
    received) are sums over training nodes and rounds. `informative_in_set` is the mean number of
    rollouts in a training set whose completions have different rewards.
    """

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
    """An arm compared with arm `against` in one outcome, over `seeds` pairs of runs.

    `group` names the part of the arm's nodes that is compared; None means all nodes. `gain` is the
    ratio of the two mean outcomes, 1.94 for +94 %; None if that of `against` is 0. `difference` is
    the mean outcome of `arm` minus that of `against`. `…_low` and `…_high` are the ends of the
    intervals; None if there are too few seeds. `gain_low` and `gain_high` are also None if the mean
    of `against` is 0 in a draw of the bootstrap. `p` is the two-sided p-value, `p_adjusted` the
    p-value after Holm's correction for several comparisons.
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
    """An arm's own reward minus the baseline's, and the round from which it exceeds chance.

    `difference` is averaged over ten rounds and has one value for each of `rounds`. If the arms did
    not differ, it would stay within ± `band` in all rounds with a probability of at least 95 %.
    `first` is the first round in which it is outside this band, `stays` the first from which it is
    outside in all rounds to the end. Each is None if there is no such round.
    """

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
    """The gain over the baseline in cumulative own reward, had the runs ended after `rounds`.

    `gain`, `gain_low` and `gain_high` are as in `LabComparison`.
    """

    rounds: int
    gain: Ratio | None
    gain_low: Ratio | None
    gain_high: Ratio | None


class LabHorizons(Struct, frozen=True):
    """An arm's gain over the baseline, had the runs ended after 20 %, 40 %, … of the rounds."""

    arm: str
    gains: list[LabGainAfter]


class LabReached(Struct, frozen=True):
    """When an arm's held-out score reaches the baseline's final one and no longer falls below it.

    Each run is compared with the baseline's run with the same seed. Scores are averaged over three
    evaluations. `runs` is the number of runs that reach the baseline's score. `rounds` and `tokens`
    are medians over all runs: after how many rounds a run reaches the score, and how many tokens
    its training nodes have generated by then. Both are None if half of the runs or more do not
    reach it.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class LabPaperArm(Struct, frozen=True):
    """An arm of the controlled experiment in the SAPO paper.

    `total` is its cumulative reward in the paper, `gain` the ratio to the paper's baseline.
    """

    name: str
    total: float
    gain: float


class LabRunFile(Struct, frozen=True):
    """One run: the name of its uncompressed file, and the SHA-256 in hex of its JSON lines."""

    arm: str
    seed: int
    file: str
    sha256: str


class PublishedReport(Struct, frozen=True):
    """A lab report, as `swarm-node lab report` writes it to `report.json`.

    `format` is the version of that file; there is only version 1. `question`, `phase`, `settings`
    (TOML), `baseline` and `rounds` are those of the experiment, and `design` is the hash of the
    experiment's design. `seeds` are the paired seeds (`LabEstimate`). `headline` and `notes` are
    sentences about the results. `differences` says how the experiment differs from the paper's, and
    `commands` reproduce the report.

    Raises ValueError if two arms have the same name, if `arms` lacks the baseline or an arm with
    results elsewhere in the report, or if `horizons` has different rounds for different arms.
    """

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
        """The comparisons in cumulative own reward over all nodes of an arm, by the arm's name."""
        return {
            each.arm: each
            for each in self.comparisons
            if each.outcome == "own" and each.group is None
        }


class LabFinding(Struct, frozen=True):
    """One comparison that helps to answer a question, and whether its result is as expected.

    `report` is the name of the folder with the comparison's report; the summary is in the parent
    folder. `at_least` is the smallest gain that was expected (a ratio), None if none was stated.
    `holds` is True if the result is as expected, and None if nothing was expected.
    """

    report: str
    experiment: str
    phase: Phase
    at_least: float | None
    holds: bool | None
    comparison: LabComparison


class LabSummaryAnswer(Struct, frozen=True):
    """The findings about one question of the lab.

    `figures` is empty if nothing was measured. `pending` is the number of comparisons that were
    announced but have no report yet. `confirmed_on_unseen` is for the question about the recipe: it
    is True if there are findings, all of them are confirmatory and as expected, and nothing is
    pending. For other questions it is always False.
    """

    figures: list[LabFinding] = []
    pending: int = 0
    confirmed_on_unseen: bool = False
