"""The format of `report.json`: every number of a report, for use by other pages.

Rewards are per completion, in [0, 1]; cumulative ones are sums over rounds of the mean over nodes.
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
    """A mean over the paired seeds, with its 95 % interval if there are enough seeds."""

    value: float
    low: float | None = None
    high: float | None = None


class SeedOutcome(Struct, frozen=True):
    """The outcomes of one run.

    `own` and `training_set` are cumulative rewards, as means over nodes: of own rollouts, and of
    training sets (the paper's T^n). `held_out_area` is the mean height of the held-out curve and
    `held_out_final` its end; `forgetting`, `drawdown` and `wobble` are of the same curve
    (`lab.outcomes.HeldOut`). `take_off` is the first round from which the mean own reward stays
    above `Report.take_off_at` (see `lab.outcomes.take_off`), or None. `tokens`, `sent` and
    `received` (bytes) are sums over all training nodes and rounds. `informative`, the share of own
    rollouts that are informative, and `informative_in_set` and `external`, the numbers of
    informative and of external rollouts in a training set, are means over nodes and rounds.
    `length` (tokens of a completion), `reflection` and `poisoned` (shares of own completions) are
    means over nodes and the last ten rounds. `spread` and `held_out_spread` are the standard
    deviations over nodes of the cumulative own reward and of the final held-out score. The lists
    have one number for each training node, in order. If the run has fewer than two evaluations,
    the values of the held-out curve are None, and their lists empty.
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

    `low` and `high` are the ends of each point's interval at 95 %; empty if the curve has no
    intervals, or with too few seeds for them.
    """

    rounds: list[int]
    mean: list[float]
    low: list[float] = []
    high: list[float] = []


class Curves(Struct, frozen=True):
    """An arm's curves.

    `own` is the own reward, averaged over ten rounds, and `cumulative` the sum of own rewards up to
    each round. `held_out` has a point for each evaluation. `informative`, `length`, `reflection`
    and `poisoned` are as in `SeedOutcome`, but averaged over ten rounds at each point, and have no
    intervals. `held_out` is None if a run has no evaluation, `reflection` if the mean share stays
    below `arms.SEEN`, and `poisoned` if it is always 0.
    """

    own: Curve
    cumulative: Curve
    held_out: Curve | None
    informative: Curve
    length: Curve
    reflection: Curve | None
    poisoned: Curve | None


class GroupOfNodes(Struct, frozen=True):
    """Identical training nodes of an arm.

    `first` and `last` are their first and last index in the report's lists by node.
    """

    name: str
    first: int
    last: int


class ArmReport(Struct, frozen=True):
    """One arm. `settings` describes the arm's own settings in one line.

    `design` is the fingerprint of experiment and arm that its runs carry. `nodes` is the number of
    nodes that train, `attackers` the number of nodes that do not. `seeds` has the outcomes of all
    its runs; the means and curves are over the seeds of `Report.seeds` only. `take_off` is the
    median over these seeds, None if half of them or more did not take off. `tokens` and
    `bytes` (sent and received) are totals of the training nodes.
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
    """An arm compared with another one in one outcome, paired by seed.

    `group` names the nodes that are compared, None for all. `gain` is the ratio of the two arms'
    means, 1.94 for +94 %, and None where the other arm's mean is 0; `difference` is the difference
    of the means. Intervals are at 95 %, None with too few seeds; that of the gain is None also if
    the other arm's mean is 0 in a draw of the bootstrap. `p` is two-sided and `p_greater`
    one-sided, both from the sign-flip test. `p_adjusted` is `p` adjusted by Holm's method over all
    comparisons of the same outcome, also those with arms without runs yet (comparisons of groups
    separately). `least_p` is, for up to 14 seeds, the smallest `p` that they can give.
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
    """The gain in cumulative own reward over the baseline, had the runs ended after `rounds`.

    `gain` is None if the baseline's sum is 0. The ends of its interval are None also if that sum is
    0 in a draw of the bootstrap, or with too few seeds.
    """

    rounds: int
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class Horizons(Struct, frozen=True):
    """An arm's gain, had the runs ended after each fifth of the rounds."""

    arm: str
    gains: list[GainAfter]


class Reached(Struct, frozen=True):
    """When an arm's runs reach, for good, the final held-out score of the baseline's runs.

    Each run is compared with the baseline's run with the same seed. Scores are averaged over three
    evaluations. `runs` is the number of paired runs that reach the baseline's score. `rounds` and
    `tokens` (generated by the training nodes until then) are medians over all paired runs. A run
    that does not reach the score counts as later than all others, so the medians are None if half
    of the runs or more do not reach it.
    """

    arm: str
    runs: int
    rounds: float | None
    tokens: float | None


class OnsetReport(Struct, frozen=True):
    """The round from which an arm's own reward differs from the baseline's.

    `difference` is the mean over `seeds` pairs of runs of the difference in own reward, averaged
    over ten rounds; by chance alone it stays within ± `band` in all rounds together 19 times in 20.
    `first` is the first round in which it is outside the band, `stays` the first round from which
    it is outside to the end; None where there is none.
    """

    arm: str
    seeds: int
    rounds: list[int]
    difference: list[float]
    band: list[float]
    first: int | None
    stays: int | None


class RunFile(Struct, frozen=True):
    """A run of the report: its uncompressed file's name, and the SHA-256 of its lines in hex."""

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

    `design` is the experiment's fingerprint without its arms, `settings` its TOML file. `seeds` are
    the paired seeds: every arm that has a finished run has one with each of these. All figures
    except `ArmReport.seeds` use only these; `left_out` are the other seeds with finished runs, and
    `missing` names the runs that are not finished. `headline` and `notes` are sentences from the
    numbers. `differences` are sentences about how the set-up is unlike the paper's. `commands`
    reproduce the report.
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
