"""One model's arms compared: over rounds, by dataset, and by share of external rollouts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from django.utils.translation import gettext as _

from judge.models import Comparison, Season
from judge.selectors.rounds import summaries_in
from judge.statistics.summaries import ArmGroup
from judge.statistics.task_gaps import TaskGap
from swarm_web.board.mixes import Mix, read_mixes
from swarm_web.core.errors import RequestError
from swarm_web.dashboard.charts.arms import ArmMean, ArmPoint, draw_arms, pool_arm
from swarm_web.dashboard.charts.parts import TabledChart, Value
from swarm_web.dashboard.reports.compare import measure_reach

CHARTED_ROUNDS = 60


@dataclass(frozen=True)
class Duel:
    """The comparison of a model's arms in one season, in detail.

    `drawing` shows the arms' scores over the season's last rounds, and `gaps` has the difference
    between the arms in each dataset. `mixes` are groups of nodes with similar shares of external
    rollouts, each with the group's score relative to the model's mean.
    """

    model: str
    drawing: TabledChart
    gaps: list[TaskGap]
    mixes: list[Mix]

    @property
    def gap_reach(self) -> float:
        """How far the scale of `gaps` extends on both sides of 0; 0.1 is 10 percentage points."""
        return measure_reach([(gap.difference, gap.interval) for gap in self.gaps])

    @property
    def mix_reach(self) -> float:
        """How far the scale of `mixes` extends on both sides of 0; 0.1 is 10 percentage points."""
        return measure_reach([(mix.deviation, mix.interval) for mix in self.mixes])


def choose_model(models: Sequence[str], requested: str | None) -> str | None:
    """Return the requested model. If `requested` is None or empty, return the first model.

    If `models` is empty too, return None. Raises RequestError if the requested model is not in
    `models`.
    """
    if requested and requested not in models:
        raise RequestError(
            "query.model",
            f"No model {requested[:80]!r} is compared in this season.",
            fix="Take a model's name from /compare/.",
        )
    return requested or next(iter(models), None)


def read_duel(season: Season, model: str) -> Duel:
    """Read the comparison of a model's arms, in three queries."""
    stored = Comparison.objects.filter(season=season, model=model).first()
    return Duel(
        model=model,
        drawing=draw_duel(season, model),
        gaps=msgspec.convert(stored.tasks, list[TaskGap]) if stored else [],
        mixes=read_mixes(season, model),
    )


def draw_duel(season: Season, model: str) -> TabledChart:
    """Draw the scores of each arm of a model over the season's last rounds, in one query."""
    points: defaultdict[str, list[ArmPoint]] = defaultdict(list)
    for number, stored in summaries_in(season, rounds=CHARTED_ROUNDS):
        for group in msgspec.convert(stored, list[ArmGroup]):
            if group.model == model:
                point = ArmPoint(number, group.nodes, group.mean, group.variance)
                points[group.arm].append(point)
    arms = {arm: pool_arm(found) for arm, found in points.items()}
    return TabledChart(
        draw=partial(draw_arms, arms),
        columns=[_("Round"), _("Swarm"), "95 %", _("Isolated"), "95 %", _("Untrained")],
        rows=_tabulate(arms),
    )


def _tabulate(arms: dict[str, list[ArmMean]]) -> list[list[Value]]:
    by_round: defaultdict[int, dict[str, ArmMean]] = defaultdict(dict)
    for arm, means in arms.items():
        for mean in means:
            by_round[mean.round][arm] = mean
    rows: list[list[Value]] = []
    for number in sorted(by_round, reverse=True):
        cells: list[Value] = [number]
        for arm in ("swarm", "isolated"):
            found = by_round[number].get(arm)
            cells += [found.mean if found else None, found.interval if found else None]
        base = by_round[number].get("base")
        rows.append([*cells, base.mean if base else None])
    return rows
