"""Scores of one model's nodes by training mix: the share of external rollouts they trained on.

Nodes report what they trained on. Their mix was not assigned at random, so differences between
mixes may have other causes.
"""

from dataclasses import dataclass
from math import sqrt

from django.db.models import Avg, Case, Count, F, FloatField, IntegerField, StdDev, Value, When
from django.db.models.functions import Cast

from judge.models import Season
from judge.statistics.comparison import MIN_ROUNDS
from swarm_record.stats import Interval, student_quantile
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution

# Upper ends of the ranges of the external share, after the first range, which is exactly 0.
_UPPER_BOUNDS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Mix:
    """A model's nodes whose share of external rollouts is in one range, and how well they score.

    A node's share is the number of external rollouts that it trained on, divided by the number of
    all rollouts that it trained on. The range is [low, high), but 0 is only in the first range, in
    which `low` and `high` are both 0. `nodes` is the number of nodes. A node's deviation is its
    score minus the mean score of its model's trained nodes in the same round, averaged over its
    rounds. `deviation` is the mean of the nodes' deviations, in [-1, 1]. `interval` is the 95 %
    Student interval of this mean; it is None for a single node, or if all deviations are equal.
    """

    low: float
    high: float
    nodes: int
    deviation: float
    interval: Interval | None


def read_mixes(season: Season, model: str) -> list[Mix]:
    """Return a model's nodes grouped by their share of external rollouts, lowest share first.

    Untrained and quarantined nodes are left out. So are nodes that trained on none of their own
    rollouts, and nodes with fewer than MIN_ROUNDS scored rounds. Makes one query.
    """
    external = Cast("external_used", FloatField())
    rows = (
        Contribution.objects.filter(
            season=season,
            local_used__gt=0,
            node__quarantined=False,
            node__ledgers__season=season,
            node__ledgers__model=model,
            node__ledgers__deviation_rounds__gte=MIN_ROUNDS,
            # In `exclude` the arm of any season would count.
            node__ledgers__arm__in=[Node.Arm.SWARM, Node.Arm.ISOLATED],
        )
        .annotate(share=external / (F("local_used") + F("external_used")))
        .annotate(
            range_index=_range_index(),
            deviation=F("node__ledgers__deviations") / F("node__ledgers__deviation_rounds"),
        )
        .values("range_index")
        .annotate(nodes=Count("pk"), mean=Avg("deviation"), spread=StdDev("deviation", sample=True))
        .order_by("range_index")
    )
    return [_make_mix(r["range_index"], r["nodes"], r["mean"], r["spread"]) for r in rows]


def _range_index() -> Case:
    """Return the SQL expression for the index of the range that contains a node's `share` (`Mix`).

    The first range, with index 0, contains only the share 0.
    """
    ends = [When(share__lt=end, then=Value(at)) for at, end in enumerate(_UPPER_BOUNDS, start=1)]
    return Case(
        When(share=0, then=Value(0)),
        *ends,
        default=Value(len(_UPPER_BOUNDS) + 1),
        output_field=IntegerField(),
    )


def _make_mix(range_index: int, nodes: int, mean: float, spread: float | None) -> Mix:
    bounds = (0.0, 0.0, *_UPPER_BOUNDS, 1.0)
    interval = None
    if nodes > 1 and spread:
        half = student_quantile(nodes - 1) * spread / sqrt(nodes)
        interval = (mean - half, mean + half)
    return Mix(bounds[range_index], bounds[range_index + 1], nodes, mean, interval)
