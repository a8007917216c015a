"""The fields of `report.json` and `summary.json` that the site reads; no I/O.

`swarm-node lab report` and `swarm-node lab summary` write these files. The client's module
`node_client.lab.report.shape` documents all fields of a report. Fields not listed here are ignored.
Rewards and scores are in [0, 1]. A cumulative reward is the sum over rounds of the nodes' mean
reward. Intervals are at 95 %.
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
    """A mean over the paired seeds; `low` and `high` are None if there are too few for an interval.

    A seed is *paired* if each arm has a finished run with it. Arms without any finished run are
    ignored here.
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
    held-out set, and `length` the number of tokens in a completion. `reflection` is the share of
    own completions with reflection, for the most frequent kind (recheck, hesitate or explore);
    `poisoned` is the share with a text that an attacker planted. All curves but `cumulative` and
    `held_out` are averaged over ten rounds. Raises ValueError if `own` or `cumulative` begins below
    round 1.
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
    """One arm: its outcomes as means over the paired seeds, and its curves.

    `settings` describes the arm's own settings in one line. `own` and `training_set` are the
    cumulative rewards of own rollouts and of training sets. `held_out_area` is the mean of the
    held-out curve, `held_out_final` its end; both are None with fewer than two evaluations.
    A run takes off in the round from which its own reward stays above a threshold. `take_off` is
    the median of these rounds, None if half of the runs or more do not take off. `tokens`
    (generated) and `bytes` (sent and received) are sums over training nodes and rounds.
    `informative_in_set` is the mean number of informative rollouts in a training set.
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
    mean outcome of `arm` divided by that of `against` (1.94 for +94 %), None if the latter is 0.
    `difference` is the mean outcome of `arm` minus that of `against`. `…_low` and `…_high` are the
    ends of the intervals; None if there are too few seeds. `gain_low` and `gain_high` are also None
    if the mean outcome of `against` is 0 in a draw of the bootstrap. `p` is the two-sided p-value,
    `p_adjusted` the p-value after Holm's correction for several comparisons.
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
    """An arm's own reward minus the baseline's own reward, and when the difference exceeds chance.

    `difference` is averaged over ten rounds and has one value for each of `rounds`. If the arms did
    not differ, it would stay within ± `band` in all rounds with a probability of at least 95 %.
    `first` is the first round in which the difference is outside this band, `stays` the first round
    from which it stays outside to the end. Each is None if there is no such round. Raises
    ValueError if `rounds` is empty, or if `difference` or `band` has another length.
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
    """The gain over the baseline in the cumulative own reward of the first `rounds` rounds.

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
    """When an arm reaches the baseline's final held-out score and stays at or above it.

    Each run is compared with the baseline's run with the same seed. Scores are averaged over three
    evaluations. `runs` is the number of runs that reach the baseline's score. `rounds` is the
    median round in which a run reaches the score, `tokens` the median number of tokens that its
    training nodes have generated by then. Both are None if half of the runs or more do not reach
    the score.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class LabPaperArm(Struct, frozen=True):
    """An arm of the controlled experiment in the SAPO paper.

    `total` is the arm's reward in the paper, summed over nodes and rounds, `gain` the ratio to the
    baseline's total.
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

    `format` is the version of the file format, always 1. `question`, `phase`, `settings` (TOML),
    `baseline` and `rounds` are those of the experiment, and `design` is the hash of the
    experiment's design. `seeds` are the paired seeds (`LabEstimate`). `headline` and `notes` are
    sentences about the results. `differences` says how the experiment differs from the SAPO paper's
    experiment, and `commands` reproduce the report.

    Raises ValueError if two arms have the same name, if `arms` lacks the baseline or an arm with
    results in another field, or if `horizons` has different rounds for different arms.
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
        """Comparisons of each arm's cumulative own reward with the baseline's, by the arm's name.

        Each comparison covers all nodes of the arms, not a group. The baseline itself is left out.
        """
        return {
            each.arm: each
            for each in self.comparisons
            if each.outcome == "own" and each.group is None
        }


class LabFinding(Struct, frozen=True):
    """One comparison that helps to answer a question, and whether its result is as expected.

    `report` is the name of the folder with the comparison's report, a subfolder of the summary's
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

    `figures` is the list of findings, empty if nothing was measured. `pending` is the number of
    comparisons that were announced but have no report yet. `confirmed_on_unseen` is used for one
    question only: whether a recipe is better than the paper's. It is True if there are findings,
    all of them are confirmatory and as expected, and nothing is pending.
    """

    figures: list[LabFinding] = []
    pending: int = 0
    confirmed_on_unseen: bool = False
