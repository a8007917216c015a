"""What the judge claims about swarm and isolated nodes, model by model, in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judge.comparison import MIN_NODES_PER_ARM, MIN_ROUNDS, Claim, Missing
from judge.models import Comparison, Season
from judge.selectors import coin_share, comparisons_in, shown_season

METHOD = (
    "Each node's mean deviation from its model's mean in the same rounds; two-sided randomisation "
    "test of the arms' difference; p-values adjusted after Holm over all models tested. Interval: "
    "Welch's at 95 %, for the model alone."
)
# The scale of the figure reaches at least so far to both sides, as a fraction of one.
_LEAST_REACH = 0.05


@dataclass(frozen=True)
class Assignment:
    """How many of a season's nodes had their arm drawn by coin, and of how many."""

    coin: int
    nodes: int

    @property
    def is_random(self) -> bool:
        """Whether a difference can be put down to the arm."""
        return 0 < self.nodes == self.coin

    @property
    def words(self) -> str:
        """What that allows to conclude."""
        if not self.nodes:
            return _("No node has an arm yet.")
        if self.coin == 0:
            return _("Owners chose: no cause can be inferred.")
        counts = {"coin": self.coin, "nodes": self.nodes}
        if self.is_random:
            return _("Coin-flip for %(coin)s of %(nodes)s nodes.") % counts
        mixed = _("Coin-flip for %(coin)s of %(nodes)s nodes; for the rest, owners chose:") % counts
        return f"{mixed} {_('no cause can be inferred.')}"


@dataclass(frozen=True)
class ClaimReport:
    """One model's claim; `words` say what it means, and `missing` what a test still needs."""

    claim: Claim
    words: str
    missing: str
    updated_at: datetime


@dataclass(frozen=True)
class CompareReport:
    """A season's claims by model; only those of an ended season are `final`."""

    season: Season | None
    assignment: Assignment
    claims: list[ClaimReport]

    @property
    def final(self) -> bool:
        """Whether the one test that counts has been made."""
        return self.season is not None and self.season.state == Season.State.ENDED

    @property
    def tested(self) -> int:
        """How many models were tested."""
        return sum(report.claim.missing is None for report in self.claims)

    @property
    def rule(self) -> str:
        """What isolated nodes give to the swarm in this season."""
        if self.season is None or self.season.isolated_publish:
            return _("Isolated nodes share their rollouts but take none.")
        return _("Isolated nodes train alone: they neither share rollouts nor take any.")

    @property
    def reach(self) -> float:
        """How far from 0 the figure's scale reaches, as a fraction of one."""
        ends = [abs(end) for report in self.claims for end in report.claim.interval or ()]
        shown = [abs(report.claim.difference or 0.0) for report in self.claims]
        return max([_LEAST_REACH, *ends, *shown])

    @property
    def headline(self) -> str:
        """What all claims together say, in one sentence."""
        if not self.claims:
            return _("Does sharing help? Nothing to compare yet")
        if not self.tested:
            return _("Does sharing help? Too few nodes to say yet")
        return self.answer

    @property
    def answer(self) -> str:
        """The same, where the question stands above it."""
        if not self.claims:
            return _("Nothing to compare yet")
        if not self.tested:
            return _("Too few nodes to say yet")
        verdicts = [report.claim.verdict for report in self.claims]
        return _summarise(verdicts, tested=self.tested)


def read_comparison() -> CompareReport:
    """Read the shown season's claims, tested models first, in a constant number of queries."""
    season = shown_season()
    if season is None:
        return CompareReport(season=None, assignment=Assignment(0, 0), claims=[])
    assignment = Assignment(*coin_share(season))
    claims = [_describe(stored, assignment) for stored in comparisons_in(season)]
    claims.sort(key=lambda report: report.claim.missing is not None)
    return CompareReport(season=season, assignment=assignment, claims=claims)


def _describe(stored: Comparison, assignment: Assignment) -> ClaimReport:
    claim = msgspec.convert(stored.claim, Claim)
    return ClaimReport(
        claim=claim,
        words=describe_verdict(claim, assignment=assignment),
        missing=describe_missing(claim.missing) if claim.missing else "",
        updated_at=stored.updated_at,
    )


def describe_verdict(claim: Claim, *, assignment: Assignment) -> str:
    """Say what a claim means, and no more than how arms were assigned allows."""
    if claim.verdict == "too_few":
        return _("Not tested yet.")
    if claim.verdict == "not_shown":
        return _("No difference is shown. That does not prove that there is none.")
    higher = (
        _("Swarm nodes score higher than chance explains.")
        if claim.verdict == "swarm_better"
        else _("Isolated nodes score higher than chance explains.")
    )
    cause = (
        _("As a coin chose, the arm made a difference.")
        if assignment.is_random
        else _("No cause can be inferred, because owners chose their arms.")
    )
    return f"{higher} {cause}"


def describe_missing(missing: Missing) -> str:
    """Say what a model needs before it is tested."""
    lacking = []
    if missing.swarm_nodes:
        lacking.append(
            ngettext("%(n)s more swarm node", "%(n)s more swarm nodes", missing.swarm_nodes)
            % {"n": missing.swarm_nodes}
        )
    if missing.isolated_nodes:
        lacking.append(
            ngettext(
                "%(n)s more isolated node", "%(n)s more isolated nodes", missing.isolated_nodes
            )
            % {"n": missing.isolated_nodes}
        )
    if lacking:
        return _("Needs %(nodes)s with %(rounds)s rounds each.") % {
            "nodes": _(" and ").join(lacking),
            "rounds": MIN_ROUNDS,
        }
    return ngettext(
        "Needs %(rounds)s more round of %(nodes)s nodes in each arm.",
        "Needs %(rounds)s more rounds of %(nodes)s nodes in each arm.",
        missing.rounds,
    ) % {"rounds": missing.rounds, "nodes": MIN_NODES_PER_ARM}


def _summarise(verdicts: Sequence[str], *, tested: int) -> str:
    swarm, isolated = verdicts.count("swarm_better"), verdicts.count("isolated_better")
    counts = {"swarm": swarm, "isolated": isolated, "tested": tested}
    if swarm and isolated:
        both = _("Of %(tested)s models, swarm nodes lead in %(swarm)s, isolated in %(isolated)s")
        return both % counts
    if swarm:
        return _("Swarm nodes lead in %(swarm)s of %(tested)s models tested") % counts
    if isolated:
        return _("Isolated nodes lead in %(isolated)s of %(tested)s models tested") % counts
    return ngettext(
        "No difference is shown in the one model tested",
        "No difference is shown in %(tested)s models tested",
        tested,
    ) % {"tested": tested}
