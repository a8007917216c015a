"""How a node trains, as it reports: reward and reflection over time, and whom it learns with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.utils.translation import gettext as _

from judge.models import Season
from swarm_web.dashboard.charts.training import (
    Step,
    draw_reflection,
    draw_training,
    name_kinds,
)
from swarm_web.dashboard.reports.drawings import Drawing
from swarm_web.nodes.models import Node
from swarm_web.relay.selectors import Peer, given_to, taken_from, training_points

# As many points as a chart shows apart; the relay keeps one in some minutes.
CHARTED_POINTS = 288
LISTED_PEERS = 8
PEERS_SINCE = timedelta(days=7)


@dataclass(frozen=True)
class Exchanged:
    """Whose rollouts a node trained on in the last days, and who trained on its own."""

    taken: list[Peer]
    given: list[Peer]


def read_steps(node: Node, season: Season) -> list[Step]:
    """Return what a node reported of its latest steps in a season, oldest first, in one query."""
    points = training_points(node, season_id=season.pk, limit=CHARTED_POINTS)
    return [
        Step(point.step, point.training_reward, point.informative_share, point.reflection)
        for point in points
    ]


def read_exchanged(node: Node, season: Season, *, now: datetime) -> Exchanged:
    """Return with whom a node exchanged most, in two queries."""
    since = now - PEERS_SINCE
    return Exchanged(
        taken=taken_from(node, season_id=season.pk, since=since, limit=LISTED_PEERS),
        given=given_to(node, season_id=season.pk, since=since, limit=LISTED_PEERS),
    )


def tell_training(steps: Sequence[Step]) -> Drawing:
    """Draw training reward and informative share."""
    return Drawing(
        draw=partial(draw_training, steps),
        columns=[_("Step"), _("Training reward"), _("Informative share")],
        rows=[(s.step, s.training_reward, s.informative_share) for s in reversed(steps)],
    )


def tell_reflection(steps: Sequence[Step]) -> Drawing:
    """Draw how often completions recheck, hesitate or explore."""
    kinds = name_kinds()
    return Drawing(
        draw=partial(draw_reflection, steps),
        columns=[_("Step"), *kinds.values()],
        rows=[
            (s.step, *(s.reflection.get(kind) for kind in kinds))
            for s in reversed(steps)
            if s.reflection
        ],
    )
