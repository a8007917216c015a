"""How evidence about a node lowers its hand-out weight, and how the weight returns; no I/O.

The weight is the factor on the chance that a node's rollouts are drawn. Its levels are full (1),
lowered (1/4) and withheld (0). A finding lowers the node by one level, so a single false finding
withholds nothing. The node rises by one level after 2 hours without a finding. This time doubles
with each further finding of the season, up to 64 hours. A *window* here is the time in which
evidence is counted: an hour of messages, or 256 spot checks. The findings:

- REFUSED: more than half of what the node sent in an hour was refused, because it was not a rollout
  of this season or not a readable message (exact binomial test, one-sided, at SIGNIFICANCE). The
  first SPOOL refusals of the hour do not count: a client may send its queue while a season ends,
  and the queue holds at most SPOOL rollouts. Other refusals are rare, because clients check what
  they send. A node whose messages are all refused gets this finding after 145 refusals.
- FLOODING: more than MAX_HURRIED messages of an hour exceeded the site's rate limit. This is a
  fixed bound, not a statistical test, because a client waits for the `retry_after` of a refusal.
  Refusals by the account's limit alone do not count: another node of the account may have used the
  allowance.
- UNHEEDING: more than MAX_FLOODS times in an hour a web process closed the node's connection
  because the node continued to send, either after `quota.FLOOD_REFUSALS` refusals with a
  `retry_after` or while it did not read a reply (`gateway.inbox`). This is also a fixed bound,
  which a client never reaches. A node that does not read replies but sends little never gets this
  finding, however often it is disconnected: a slow link, a link that loses large packets and a
  sleeping machine look the same.
- COPYING: more than COPY_SHARE of the rollouts that the node offered in an hour were copies of
  rollouts in the pool (the binomial test). `likeness` also takes some honest rollouts for copies:
  for the policies on which it errs most often, 4 in 100; for policies with short completions, at
  most 3 in 10,000. A node that copies everything gets this finding after 9 rollouts.
- WORTHLESS, by spot checks: more than WORTHLESS_SHARE of the checked rollouts are useless for
  training (the binomial test). A rollout is useless if its question cannot be generated or is not
  of the training class, or if the verifier hangs or fails on a completion. Examples of findings: 4
  of the first 4, 8 of 20, 14 of 64. Completions without an answer are no evidence: an untrained
  model gives no answers. The finding may be false if the worker's machine repeatedly stalls for
  the verifier's whole deadline.
- MISDECLARED, by spot checks: more than MISDECLARED_SHARE of the checked rollouts that the node
  declares informative have no right completion (the binomial test); at least 17 must be checked. A
  client declares a rollout if its own verifier found both right and wrong completions, and
  verifiers agree: datasets that depend on the machine are on no allow-list. A rollout with only
  right completions is not misdeclared, because clients with older rules accept fewer answers.
  Useless rollouts are left out.
- TOO_RIGHT, by spot checks: the share of checked rollouts with only right completions is larger
  than the node's judge scores allow.

**Too right to be true.** If a policy solves a question with a chance of p, all of its completions
are right with a chance of at most p, however many there are. So for questions drawn at random, the
share of all-right rollouts in each dataset is at most the share that the node solves in the judge's
rounds. A client with a full queue drops informative rollouts last, which only lowers the share of
all-right ones. The share in the judge's rounds is taken as the upper Clopper-Pearson limit at
JUDGE_ERROR over the rounds that opened since the checks began, plus MARGIN. MARGIN allows for what
a node learns or forgets between a check and a round, and for another sampling temperature. The
number of all-right rollouts is tested at SIGNIFICANCE against a binomial distribution, whose
probability is the mean of these limits over the checks: no sum of independent events with the same
mean has a heavier upper tail (Hoeffding 1956). A node that solves 6 of the judge's 64 questions and
publishes only right answers gets the finding after 16 checks.

Only this test detects right answers with poisonous text around them. It detects no such text if the
judge has asked the node nothing from the dataset since the checks began, if the node is right as
often in the judge's rounds, or if the rollouts have a wrong completion. The test may be wrong about
a policy that solved nearly everything and then collapsed, and about a client that shares only
all-right rollouts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

SIGNIFICANCE = 1e-5
# For messages and published rollouts: the length of a window, and the limits of the findings.
WINDOW = timedelta(hours=1)
REFUSED_SHARE = 0.5
# The size of a client's queue of unsent rollouts (`node_client.swarm.exchange`).
SPOOL = 128
MAX_HURRIED = 600
MAX_FLOODS = 2
COPY_SHARE = 0.25
# For spot checks: the number in a window, and the limits of the findings.
CHECKS_PER_WINDOW = 256
WORTHLESS_SHARE = 0.05
MISDECLARED_SHARE = 0.5
JUDGE_ERROR = 1e-5
MARGIN = 0.15
# How long a level lasts after the first finding, and how often this is doubled at most.
PROBATION = timedelta(hours=2)
_MAX_DOUBLINGS = 5

# dataset -> (solved, n) in rounds of the judge; dataset -> (all right, checked) of spot checks
Cells = Mapping[str, tuple[int, int]]


class Level(StrEnum):
    """The levels of a node's hand-out weight."""

    FULL = "full"
    LOWERED = "lowered"
    WITHHELD = "withheld"

    @property
    def weight(self) -> float:
        """The factor on the chance that a rollout of the node is drawn."""
        return _WEIGHTS[self]


_WEIGHTS = {Level.FULL: 1.0, Level.LOWERED: 0.25, Level.WITHHELD: 0.0}
_LOWER = {Level.FULL: Level.LOWERED, Level.LOWERED: Level.WITHHELD}
_HIGHER = {Level.WITHHELD: Level.LOWERED, Level.LOWERED: Level.FULL}


class Charge(StrEnum):
    """What a finding is about."""

    REFUSED = "refused"
    FLOODING = "flooding"
    UNHEEDING = "unheeding"
    COPYING = "copying"
    WORTHLESS = "worthless"
    MISDECLARED = "misdeclared"
    TOO_RIGHT = "too_right"


@dataclass(frozen=True)
class Finding:
    """Evidence that a node broke the rule `charge`: `bad` of `total` items break it.

    `allowed` is the largest tolerated share of bad items, in [0, 1].
    """

    charge: Charge
    bad: int
    total: int
    allowed: float


@dataclass(frozen=True)
class Sent:
    """Counts of what a node sent in a window (see the module).

    `published` rollouts were accepted; `copies` and `refused` were not. `refused` includes
    unreadable messages, and `hurried` counts messages over the rate limit. `floods` is the number
    of times that a web process closed the connection because the node continued to send.
    """

    published: int = 0
    refused: int = 0
    copies: int = 0
    hurried: int = 0
    floods: int = 0


@dataclass(frozen=True)
class Checked:
    """What the site's verifier found about one rollout: `solved` of `total` completions are right.

    `worthless` is whether the rollout is useless for training, whatever its answers; a worthless
    rollout has `solved` 0. `declared` is whether the node declared the rollout informative.
    """

    dataset: str
    solved: int
    total: int
    worthless: bool = False
    declared: bool = False

    @property
    def informative(self) -> bool:
        """Whether some completions are right and some wrong. False for a worthless rollout.

        Right and wrong completions have different rewards, even if rewards give partial credit.
        """
        return not self.worthless and 0 < self.solved < self.total

    @property
    def all_right(self) -> bool:
        """Whether every completion is right."""
        return self.solved == self.total > 0

    @property
    def misdeclared(self) -> bool:
        """Whether the rollout was declared informative, although no completion is right.

        False if the rollout is `worthless`, because worthless rollouts are counted separately.
        """
        return self.declared and not self.worthless and not self.solved


@dataclass(frozen=True)
class Checks:
    """Counts of a window's spot checks.

    A checked rollout is counted either in `worthless` or in `cells`. `cells` has two numbers for
    each dataset: the rollouts whose completions are all right, and all rollouts. `declared` counts
    the rollouts in `cells` that were declared informative, and `misdeclared` counts those of the
    declared ones that have no right completion.
    """

    worthless: int = 0
    declared: int = 0
    misdeclared: int = 0
    cells: Cells = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of checks."""
        return self.worthless + sum(n for _, n in self.cells.values())

    def add(self, check: Checked) -> "Checks":
        """Return new counts that include `check`."""
        if check.worthless:
            return replace(self, worthless=self.worthless + 1)
        right, n = self.cells.get(check.dataset, (0, 0))
        return replace(
            self,
            declared=self.declared + check.declared,
            misdeclared=self.misdeclared + check.misdeclared,
            cells={**self.cells, check.dataset: (right + check.all_right, n + 1)},
        )


@dataclass(frozen=True)
class Hold:
    """A node's hand-out level, its number of findings in the season, and when the level rises.

    `until` is None if the level does not rise by itself.
    """

    level: Level = Level.FULL
    findings: int = 0
    until: datetime | None = None


def evaluate_sent(sent: Sent) -> Finding | None:
    """Return the finding that follows from a node's messages and rollouts in a window.

    Returns None if nothing is found. If several rules are broken, the finding is about the first of
    these: FLOODING, UNHEEDING, REFUSED, COPYING.
    """
    if sent.hurried > MAX_HURRIED:
        return Finding(Charge.FLOODING, sent.hurried, sent.hurried, MAX_HURRIED / sent.hurried)
    if sent.floods > MAX_FLOODS:
        return Finding(Charge.UNHEEDING, sent.floods, sent.floods, MAX_FLOODS / sent.floods)
    total = sent.published + sent.copies + sent.refused
    if _is_significant(sent.refused - SPOOL, total - SPOOL, REFUSED_SHARE):
        return Finding(Charge.REFUSED, sent.refused, total, REFUSED_SHARE)
    offered = sent.published + sent.copies
    if _is_significant(sent.copies, offered, COPY_SHARE):
        return Finding(Charge.COPYING, sent.copies, offered, COPY_SHARE)
    return None


def evaluate_checks(checks: Checks, *, judge_cells: Cells) -> Finding | None:
    """Return the finding that follows from a window of spot checks.

    Returns None if nothing is found. If several rules are broken, the finding is about the first of
    these: WORTHLESS, MISDECLARED, TOO_RIGHT.

    `judge_cells` has (solved, n) for each dataset: the node solved `solved` of `n` questions of the
    judge. Only rounds that opened since the window began are counted.
    """
    if _is_significant(checks.worthless, checks.total, WORTHLESS_SHARE):
        return Finding(Charge.WORTHLESS, checks.worthless, checks.total, WORTHLESS_SHARE)
    if _is_significant(checks.misdeclared, checks.declared, MISDECLARED_SHARE):
        return Finding(Charge.MISDECLARED, checks.misdeclared, checks.declared, MISDECLARED_SHARE)
    right = sum(right for right, _ in checks.cells.values())
    total = sum(n for _, n in checks.cells.values())
    if not right:
        return None
    limits = {dataset: _limit(*judge_cells.get(dataset, (0, 0))) for dataset in checks.cells}
    allowed = sum(limits[dataset] * n for dataset, (_, n) in checks.cells.items()) / total
    if _is_significant(right, total, allowed):
        return Finding(Charge.TOO_RIGHT, right, total, allowed)
    return None


def lower(hold: Hold, *, now: datetime) -> Hold:
    """Return the hold after one more finding: one level lower, unless it is at the lowest.

    After the season's first finding, the new level lasts 2 hours. The time doubles with each
    further finding, up to 64 hours.
    """
    doublings = min(hold.findings, _MAX_DOUBLINGS)
    level = _LOWER.get(hold.level, hold.level)
    return Hold(level, hold.findings + 1, now + PROBATION * 2**doublings)


def recover(hold: Hold, *, now: datetime) -> Hold:
    """Return the hold with its level raised by one, if `hold.until` has passed.

    If it has not passed, or is None, `hold` is returned unchanged. A raised hold has a new `until`,
    or None if its level is now FULL.
    """
    if hold.until is None or now < hold.until:
        return hold
    level = _HIGHER.get(hold.level, hold.level)
    if level is Level.FULL:
        return replace(hold, level=level, until=None)
    doublings = min(hold.findings - 1, _MAX_DOUBLINGS)
    return replace(hold, level=level, until=now + PROBATION * 2**doublings)


def _limit(solved: int, n: int) -> float:
    """Return the largest plausible share of all-right rollouts.

    The node solved `solved` of `n` questions of the judge. If it solved all, or `n` is 0, the share
    is 1.
    """
    if solved >= n:
        return 1.0
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.special import betaincinv

    return min(1.0, float(betaincinv(solved + 1, n - solved, 1 - JUDGE_ERROR)) + MARGIN)


def _is_significant(bad: int, total: int, share: float) -> bool:
    """Return whether `bad` is significantly more than `share` of `total`.

    This is the exact binomial test, one-sided, at SIGNIFICANCE.
    """
    if bad <= share * total:
        return False
    from scipy.special import betainc

    # P(X >= bad) of a binomial variable.
    return bool(betainc(bad, total - bad + 1, share) < SIGNIFICANCE)
