"""The judge's claims about swarm and isolated nodes, in one season and over several, as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judge.models import Comparison, Season
from judge.selectors.scores import comparisons_in, differences_by_model
from judge.selectors.seasons import coin_share, shown_season
from judge.statistics.comparison import (
    MIN_NODES_PER_ARM,
    MIN_ROUNDS,
    ArmsClaim,
    Missing,
    alpha_per_model,
    plan_looks,
)
from judge.statistics.over_seasons import MIN_SEASONS, SeasonsClaim, compare_seasons
from judge.statistics.planning import find_effect, plan_nodes
from swarm_record.stats import Interval

METHOD = (
    "Each node's mean deviation from its model's mean in the same rounds, adjusted by regression "
    "for when the node came and for what it did in its last season; two-sided randomisation test "
    "(Welch's t) that draws arms as the coin does, at looks planned in advance, with the level "
    "spent in proportion to the rounds of the trial: p-values hold at every look. Adjusted after "
    "Holm over all models tested, with a tenth of the level kept for models that come later. "
    "Interval: Welch's at 95 %, for the model and for one look alone."
)
# Scales of differences extend at least this far on both sides, as a fraction of one.
_MIN_REACH = 0.05
# The page states how many nodes it takes to detect this difference, a fraction of one.
_PLANNED_EFFECT = 0.05
SEASONS_METHOD = (
    "Each ended season that assigned arms by coin is one unit: its difference of the arms. "
    "Two-sided exact sign-flip test, valid after each season; the interval is Student's at 95 %, "
    "for one look."
)


def measure_reach(bars: Sequence[tuple[float, Interval | None]]) -> float:
    """Return how far a scale must extend on both sides of 0 to show all `bars`.

    Each bar is a difference of scores and its interval (or None); 0.1 is 10 percentage points. The
    result is at least _MIN_REACH.
    """
    reach = _MIN_REACH
    for shown, interval in bars:
        reach = max(reach, *(abs(end) for end in (shown, *(interval or ()))))
    return reach


# ---- one season


@dataclass(frozen=True)
class ArmAssignment:
    """How the arms of a season's nodes were assigned.

    `nodes` is the number of nodes that train. Of these, `coin` nodes got their arm by a coin flip,
    and owners chose the arms of the others.
    """

    coin: int
    nodes: int

    @property
    def is_random(self) -> bool:
        """Whether every node got its arm by a coin flip; False if there are no nodes.

        Only a random assignment lets a difference between the arms be attributed to the arms.
        """
        return 0 < self.nodes == self.coin

    @property
    def words(self) -> str:
        """How arms were assigned, in words, with a warning about causation if owners chose any."""
        if not self.nodes:
            return _("No node has an arm yet.")
        if self.coin == 0:
            return _("Owners chose their arms, so this cannot show causation.")
        counts = {"coin": self.coin, "nodes": self.nodes}
        if self.is_random:
            return _("Arm assigned by coin flip for %(coin)s of %(nodes)s nodes.") % counts
        return (
            _(
                "Arm assigned by coin flip for %(coin)s of %(nodes)s nodes. Owners chose the other "
                "arms, so this cannot show causation."
            )
            % counts
        )


@dataclass(frozen=True)
class ClaimReport:
    """One model's claim in a season, with texts that explain the claim.

    `words` says what the claim shows. `missing` says what the model still needs for a test; it is
    empty if the model was tested. `power` says how many nodes a test needs and which difference the
    current nodes can detect; it is empty if these are unknown.
    """

    claim: ArmsClaim
    words: str
    missing: str
    power: str
    updated_at: datetime


@dataclass(frozen=True)
class CompareReport:
    """The page that compares the arms: in the shown season, and over several seasons (`seasons`).

    `claims` are the shown season's claims, one for each model, at the season's last look (a test
    after a planned number of rounds). Before the first look, claims are not tested. `season` is
    None before the first season. `method` and `seasons_method` describe the two tests in words.
    """

    season: Season | None
    assignment: ArmAssignment
    claims: list[ClaimReport]
    method: str = METHOD
    seasons_method: str = SEASONS_METHOD

    @cached_property
    def seasons(self) -> list["SeasonsReport"]:
        """Each model's claim over ended seasons (`read_seasons`)."""
        return read_seasons()

    @property
    def season_name(self) -> str:
        """The name of the shown season (`shown_season`); empty before the first season."""
        return self.season.name if self.season else ""

    @property
    def trial_rounds(self) -> int | None:
        """Number of rounds after which the last test is planned; None without a season."""
        return self.season.trial_rounds if self.season else None

    @property
    def look(self) -> int:
        """Number of rounds of the season that the claims cover; 0 without claims."""
        return max((report.claim.look for report in self.claims), default=0)

    @property
    def next_look(self) -> int | None:
        """Number of rounds after which the next look (test of the claims) is planned.

        None if no further look is planned, if the season has ended, and without a season.
        """
        if self.season is None or self.season.state == Season.State.ENDED:
            return None
        planned = plan_looks(self.season.trial_rounds)
        return next((look for look in planned if look > self.look), None)

    @property
    def final(self) -> bool:
        """Whether no further test will follow: the last one is over, or the season has ended.

        False without a season.
        """
        return self.season is not None and self.next_look is None

    @property
    def progress(self) -> str:
        """In words, after how many rounds the last and the next test are; empty without claims."""
        if self.season is None or not self.look:
            return ""
        trial = self.season.trial_rounds
        first = plan_looks(trial)[0]
        counts = {"first": first, "look": self.look, "next": self.next_look, "trial": trial}
        if self.next_look is None and self.look < first:
            text = _(
                "The season ended before the first test, which was planned after %(first)s rounds."
            )
        elif self.next_look is None:
            text = _(
                "Final: the last test was after %(look)s rounds; later rounds do not change the "
                "result."
            )
        elif self.look < first:
            text = _("The first test is after %(next)s of %(trial)s rounds.")
        else:
            text = _("Result after %(look)s rounds. The next test is after %(next)s of %(trial)s.")
        return text % counts

    @property
    def tested(self) -> int:
        """Number of models with enough nodes and rounds to be tested."""
        return sum(report.claim.missing is None for report in self.claims)

    @property
    def rule(self) -> str:
        """What isolated nodes share in this season, in words."""
        if self.season is None or self.season.isolated_publish:
            return _("Isolated nodes share their rollouts but receive none.")
        return _("Isolated nodes train alone: they neither share nor receive rollouts.")

    @property
    def reach(self) -> float:
        """How far the figure's scale extends on both sides of 0; 0.1 is 10 percentage points."""
        claims = [report.claim for report in self.claims]
        return measure_reach([(claim.difference or 0.0, claim.interval) for claim in claims])

    @property
    def headline(self) -> str:
        """`answer`, with "Does sharing help?" before it if no model has been tested yet."""
        if not self.claims:
            return _("Does sharing help? Nothing to compare yet")
        if not self.tested:
            return _("Does sharing help? Too few nodes to tell yet")
        return self.answer

    @property
    def answer(self) -> str:
        """The result of all claims in one sentence, or why there is none yet."""
        if not self.claims:
            return _("Nothing to compare yet")
        if not self.tested:
            return _("Too few nodes to tell yet")
        verdicts = [report.claim.verdict for report in self.claims]
        return _summarise(verdicts, tested=self.tested)


def read_comparison() -> CompareReport:
    """Read the shown season's claims, tested models first, in a constant number of queries."""
    season = shown_season()
    if season is None:
        return CompareReport(season=None, assignment=ArmAssignment(0, 0), claims=[])
    assignment = ArmAssignment(*coin_share(season))
    claims = [
        _describe_claim(stored, assignment, trial_rounds=season.trial_rounds)
        for stored in comparisons_in(season)
    ]
    claims.sort(key=lambda report: report.claim.missing is not None)
    return CompareReport(season=season, assignment=assignment, claims=claims)


def _describe_claim(
    stored: Comparison, assignment: ArmAssignment, *, trial_rounds: int
) -> ClaimReport:
    claim = msgspec.convert(stored.claim, ArmsClaim)
    return ClaimReport(
        claim=claim,
        words=describe_verdict(claim, assignment=assignment),
        missing=describe_missing(claim.missing) if claim.missing else "",
        power=describe_power(claim, trial_rounds=trial_rounds),
        updated_at=stored.updated_at,
    )


def describe_verdict(claim: ArmsClaim, *, assignment: ArmAssignment) -> str:
    """Return in words what a claim shows.

    If it shows a difference, the text also says whether it shows that the arm is the cause.
    """
    if claim.verdict == "too_few":
        return _("Not tested yet.")
    if claim.verdict == "not_shown":
        return _("No significant difference. This does not prove that there is none.")
    higher = (
        _("Swarm nodes score significantly higher.")
        if claim.verdict == "swarm_better"
        else _("Isolated nodes score significantly higher.")
    )
    cause = (
        _(
            "Arms were assigned by coin flip, so the arm caused the difference in this "
            "season's swarm."
        )
        if assignment.is_random
        else _("Owners chose their arms, so this cannot show causation.")
    )
    return f"{higher} {cause}"


def describe_power(claim: ArmsClaim, *, trial_rounds: int) -> str:
    """Return in words how many nodes a test needs, and which difference the current nodes detect.

    The test covers `trial_rounds` rounds. Empty if the variation between nodes (`claim.spread`) is
    unknown.
    """
    if claim.spread is None:
        return ""
    level = alpha_per_model(models=max(1, len(claim.family)))
    needed = plan_nodes(
        _PLANNED_EFFECT,
        spread=claim.spread,
        rounds=trial_rounds,
        alpha=level,
        minimum=MIN_NODES_PER_ARM,
    )
    shown = find_effect(
        min(claim.n_swarm, claim.n_isolated),
        spread=claim.spread,
        rounds=trial_rounds,
        alpha=level,
    )
    return _(
        "Nodes vary so much that detecting a difference of %(effect)s points in four "
        "of five seasons takes %(needed)s nodes in each arm over %(rounds)s rounds. "
        "The current nodes can detect %(shown)s points."
    ) % {
        "effect": f"{100 * _PLANNED_EFFECT:g}",
        "needed": needed,
        "rounds": trial_rounds,
        "shown": f"{100 * shown:.1f}",
    }


def describe_missing(missing: Missing) -> str:
    """Return in words how many more nodes or rounds are needed before a model is tested."""
    missing_parts = []
    if missing.swarm_nodes:
        missing_parts.append(
            ngettext("%(n)s more swarm node", "%(n)s more swarm nodes", missing.swarm_nodes)
            % {"n": missing.swarm_nodes}
        )
    if missing.isolated_nodes:
        missing_parts.append(
            ngettext(
                "%(n)s more isolated node", "%(n)s more isolated nodes", missing.isolated_nodes
            )
            % {"n": missing.isolated_nodes}
        )
    if missing_parts:
        return _("Needs %(nodes)s with %(rounds)s rounds each.") % {
            "nodes": _(" and ").join(missing_parts),
            "rounds": MIN_ROUNDS,
        }
    return ngettext(
        "Needs %(rounds)s more round with %(nodes)s nodes in each arm.",
        "Needs %(rounds)s more rounds with %(nodes)s nodes in each arm.",
        missing.rounds,
    ) % {"rounds": missing.rounds, "nodes": MIN_NODES_PER_ARM}


def _summarise(verdicts: Sequence[str], *, tested: int) -> str:
    swarm, isolated = verdicts.count("swarm_better"), verdicts.count("isolated_better")
    counts = {"swarm": swarm, "isolated": isolated, "tested": tested}
    if swarm and isolated:
        both = _(
            "Of %(tested)s models tested, swarm nodes lead in %(swarm)s and isolated "
            "nodes in %(isolated)s"
        )
        return both % counts
    if swarm:
        return _("Swarm nodes lead in %(swarm)s of %(tested)s models tested") % counts
    if isolated:
        return _("Isolated nodes lead in %(isolated)s of %(tested)s models tested") % counts
    return ngettext(
        "No significant difference in the one model tested",
        "No significant difference in %(tested)s models tested",
        tested,
    ) % {"tested": tested}


# ---- several seasons


@dataclass(frozen=True)
class SeasonsReport:
    """One model's claim over ended seasons.

    `words` says what the claim means, or what is missing for a test.
    """

    model: str
    claim: SeasonsClaim
    words: str


def read_seasons() -> list[SeasonsReport]:
    """Return each model's claim over its ended seasons, in one query.

    Includes only seasons that assigned arms by coin flip and in which the model was tested.
    """
    claims = {model: compare_seasons(found) for model, found in differences_by_model().items()}
    return [SeasonsReport(model, claim, describe_seasons(claim)) for model, claim in claims.items()]


def describe_seasons(claim: SeasonsClaim) -> str:
    """Return in words the result of the test over seasons, or how many more seasons it needs."""
    if claim.missing_seasons:
        return ngettext(
            "Needs %(lacking)s more season to run the test (minimum %(least)s).",
            "Needs %(lacking)s more seasons to run the test (minimum %(least)s).",
            claim.missing_seasons,
        ) % {"lacking": claim.missing_seasons, "least": MIN_SEASONS}
    return {
        "swarm_better": _("Over these seasons, swarm nodes score significantly higher."),
        "isolated_better": _("Over these seasons, isolated nodes score significantly higher."),
    }.get(claim.verdict, _("No significant difference. This does not prove that there is none."))
