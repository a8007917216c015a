"""The format of `report.json`: every number of a report, for use by other pages.

Rewards are per completion, in [0, 1]. Cumulative rewards are sums over rounds of the mean reward.
Held-out scores are pass@1 in [0, 1]. Numbers are rounded to six significant digits, and nothing
depends on a machine or a time, so the same raw files give the same bytes.
"""

from typing import Literal

from msgspec import Struct

from node_client.lab.config import Phase

# The outcome of a comparison: the name of a field of `SeedOutcome`.
Outcome = Literal[
    "own", "held_out_area", "held_out_final", "training_set", "forgetting", "drawdown", "poisoned"
]


class Estimate(Struct, frozen=True):
    """A mean over the seeds in `Report.seeds`, with its 95 % interval if there are enough seeds."""

    value: float
    low: float | None = None
    high: float | None = None


class SeedOutcome(Struct, frozen=True):
    """The outcomes of one run.

    Rewards, summed over rounds and averaged over nodes:

    - `own`: the reward of own rollouts.
    - `training_set`: the reward of training sets (T^n in the SAPO paper).

    Values of the mean held-out curve of all nodes, defined in `lab.outcomes.HeldOut`. They are None
    if the run has fewer than two evaluations:

    - `held_out_area`, `held_out_final`, `forgetting`, `drawdown`, `wobble`.

    Sums over all training nodes and rounds:

    - `tokens`: generated tokens; `sent`, `received`: bytes.

    Means over nodes and rounds:

    - `informative`: the share of own rollouts that are informative.
    - `informative_in_set`, `external`: the numbers of informative and of external rollouts in a
      training set.

    Means over nodes and the last ten rounds:

    - `length`: the number of tokens in a completion.
    - `reflection`, `poisoned`: shares of own completions, as in `RoundRecord`.

    Other values:

    - `take_off`: the first round from which the mean own reward stays above `Report.take_off_at`
      (`lab.outcomes.take_off`); None if there is no such round.
    - `spread`, `held_out_spread`: the standard deviations over nodes of the cumulative own reward
      and of the final held-out score; `held_out_spread` is None if the run has fewer than two
      evaluations.
    - `..._by_node`: lists with the value of each training node, in order; empty if not measured.
    """

    seed: int
    own: float
    training_set: float
    held_out_area: float | None
    held_out_final: float | None
    forgetting: float | None
    drawdown: float | None
    wobble: float | None
    take_off: int | None
    tokens: int
    sent: int
    received: int
    informative: float
    informative_in_set: float
    external: float
    length: float
    reflection: float
    poisoned: float
    spread: float
    held_out_spread: float | None
    own_by_node: list[float]
    training_set_by_node: list[float]
    held_out_area_by_node: list[float]
    held_out_final_by_node: list[float]


class Curve(Struct, frozen=True):
    """A curve over rounds, of at most 200 points: the mean over nodes and paired seeds.

    `low` and `high` are the ends of the 95 % interval at each point. They are empty if no intervals
    are computed for this kind of curve, or if there are too few seeds.
    """

    rounds: list[int]
    mean: list[float]
    low: list[float] = []
    high: list[float] = []


class Curves(Struct, frozen=True):
    """An arm's curves over rounds.

    - `own`: the own reward, averaged over ten rounds.
    - `cumulative`: the sum of own rewards up to each round.
    - `held_out`: the score in each evaluation; None if a run has no evaluation.
    - `informative`, `length`, `reflection`, `poisoned`: the values of the same name in
      `RoundRecord`, averaged over ten rounds, without intervals. `reflection` is None if its mean
      is below `arms.SEEN` in all rounds, and `poisoned` is None if it is 0 in all rounds.
    """

    own: Curve
    cumulative: Curve
    held_out: Curve | None
    informative: Curve
    length: Curve
    reflection: Curve | None
    poisoned: Curve | None


class GroupOfNodes(Struct, frozen=True):
    """A group of an arm's training nodes with the same base model and settings.

    In lists such as `SeedOutcome.own_by_node`, the group has the indices `first` to `last`.
    """

    name: str
    first: int
    last: int


class ArmReport(Struct, frozen=True):
    """One arm. `settings` describes the arm's own settings in one line.

    `design` is the `RunHeader.design` of the arm's runs. `nodes` is the number of nodes that train,
    `attackers` the number of nodes that do not. `seeds` has the outcomes of all finished runs of
    the arm. `own` to `poisoned` are means of these outcomes over the seeds in `Report.seeds`;
    `bytes` is the mean of `sent` + `received`. Only `take_off` is a median. It is None if at least
    half of the runs with these seeds did not take off.
    """

    name: str
    design: str
    settings: str
    nodes: int
    attackers: int
    groups: list[GroupOfNodes]
    seeds: list[SeedOutcome]
    own: Estimate
    training_set: Estimate
    held_out_area: Estimate | None
    held_out_final: Estimate | None
    forgetting: float | None
    drawdown: float | None
    wobble: float | None
    take_off: float | None
    tokens: float
    bytes: float
    informative: float
    informative_in_set: float
    external: float
    spread: float
    held_out_spread: float | None
    poisoned: float
    curves: Curves


class ArmComparison(Struct, frozen=True):
    """An arm compared with another arm in one outcome, paired by seed.

    - `group`: the name of the group of nodes that are compared, None for all nodes.
    - `gain`: the ratio of the two arms' means, 1.94 for +94 %; None if the other arm's mean is 0.
    - `difference`: the difference of the means.
    - `gain_low`, `gain_high`, `difference_low`, `difference_high`: the ends of the 95 % intervals;
      None with too few seeds. `gain_low` and `gain_high` are also None if the other arm's mean is 0
      in a draw of the bootstrap.
    - `p`, `p_greater`: the two-sided and the one-sided p-value of the sign-flip test.
    - `p_adjusted`: `p` adjusted by Holm's method for all comparisons of the same outcome, including
      comparisons of arms without runs yet. Comparisons of groups are adjusted separately.
    - `least_p`: as in `lab.statistics.PairedTest`.
    """

    arm: str
    against: str
    outcome: Outcome
    group: str | None
    seeds: int
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    p: float
    p_greater: float
    p_adjusted: float
    least_p: float


class GainAfter(Struct, frozen=True):
    """The gain over the baseline in the cumulative own reward of the first `rounds` rounds.

    `gain` is None if the baseline's cumulative own reward is 0. The ends of the gain's 95 %
    interval are None if that reward is 0 in a draw of the bootstrap, or with too few seeds.
    """

    rounds: int
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class Horizons(Struct, frozen=True):
    """An arm's gains over the baseline after 20, 40, 60, 80 and 100 % of the rounds."""

    arm: str
    gains: list[GainAfter]


class Reached(Struct, frozen=True):
    """When an arm's runs reach the baseline's final held-out score, and stay at or above it.

    Each run is compared with the baseline's run with the same seed. Scores are averaged over three
    evaluations. `runs` is the number of paired runs that reach the baseline's score. `rounds` is
    the median round in which a paired run reaches the score, `tokens` the median number of tokens
    that the run's training nodes generate up to that round. A run that does not reach the score
    counts as infinitely late, so both medians are None if half of the runs or more do not.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class OnsetReport(Struct, frozen=True):
    """The difference between an arm's own reward and the baseline's, and when it exceeds chance.

    `difference` (arm minus baseline) is the mean over pairs of runs, averaged over ten rounds;
    `seeds` is the number of pairs. `band` is the band of chance: if the arms did not differ, the
    whole curve of differences would stay within ± `band` with a probability of at least 95 %.
    `first` is the first round in which the difference is outside the band, and `stays` the first
    round from which it stays outside to the end. Each is None if there is no such round.
    """

    arm: str
    seeds: int
    rounds: list[int]
    difference: list[float]
    band: list[float]
    first: int | None
    stays: int | None


class RunFile(Struct, frozen=True):
    """A run of the report: the name of its uncompressed file, and the SHA-256 of that file."""

    arm: str
    seed: int
    file: str
    sha256: str


class PaperArm(Struct, frozen=True):
    """An arm of the paper's controlled experiment (arXiv 2509.08721, section 5).

    `total` is its reward summed over nodes and rounds, `gain` the ratio to the total of the arm
    8/0.
    """

    name: str
    total: float
    gain: float


class Report(Struct, frozen=True):
    """A whole report.

    - `design`: the experiment's `lab.runs.fingerprint`; `settings`: the text of `experiment.toml`.
    - `seeds`: the paired seeds, which have a finished run in every arm that has finished runs. All
      figures except `ArmReport.seeds` use only these seeds.
    - `left_out`: the other seeds with finished runs; `missing`: the names of unfinished runs.
    - `headline`, `notes`: sentences that state the main result and warnings.
    - `take_off_at`: the own reward above which a run counts as taken off.
    - `differences`: sentences about how the set-up differs from that of the SAPO paper.
    - `commands`: the commands that reproduce the report.
    """

    format: int
    name: str
    question: str
    phase: Phase
    design: str
    settings: str
    baseline: str
    rounds: int
    seeds: list[int]
    left_out: list[int]
    missing: list[str]
    headline: str
    notes: list[str]
    take_off_at: float
    arms: list[ArmReport]
    comparisons: list[ArmComparison]
    horizons: list[Horizons]
    onsets: list[OnsetReport]
    paper: list[PaperArm]
    differences: list[str]
    commands: list[str]
    runs: list[RunFile]
    reached: list[Reached] = []
