"""The spread of scores in each of a season's rounds; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.parts import (
    NEUTRAL,
    Figure,
    draw_band,
    draw_line,
    isolate,
    layout_shares,
)


@dataclass(frozen=True)
class RoundSpread:
    """The spread of the scores, in [0, 1], of a round's `n` trained nodes.

    `low` and `high` are the first and the third quartile.
    """

    round: int
    low: float
    median: float
    high: float
    best: float
    n: int


def draw_spreads(spreads: Sequence[RoundSpread]) -> Figure:
    """Draw each round's median and best score as lines, and a band between the quartiles.

    `spreads` are oldest first.
    """
    colour, rgb = NEUTRAL
    rounds = [spread.round for spread in spreads]
    median = draw_line(rounds, [s.median for s in spreads], name=_("median"), colour=colour) | {
        "customdata": [[s.low, s.high, s.n] for s in spreads],
        "hovertemplate": isolate(
            _(
                "%{y:.3f}, middle half %{customdata[0]:.3f}–%{customdata[1]:.3f}, "
                "n = %{customdata[2]}"
            )
        ),
    }
    best = draw_line(
        rounds, [s.best for s in spreads], name=_("best"), colour=colour, dash="dot"
    ) | {"hovertemplate": "%{y:.3f}"}
    band = draw_band(rounds, [s.low for s in spreads], [s.high for s in spreads], rgb=rgb)
    return {
        "data": [band, median, best] if spreads else [],
        "layout": layout_shares(rounds, title=_("judge score (macro pass@1)")),
    }
