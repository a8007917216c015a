"""The home page: what the swarm does now, who is ahead, who moved, and what was just shared."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from judge.models import Season, Standing, Window
from judge.selectors import shown_season
from swarm_web.dashboard.reports.board import read_board
from swarm_web.dashboard.reports.movers import Moves, read_moves
from swarm_web.leaderboard import Leaderboard
from swarm_web.nodes.models import Node
from swarm_web.pace import Pace, Totals, note_totals
from swarm_web.relay.models import ArchivedRollout, Contribution
from swarm_web.relay.selectors import recent_rollouts

LEADERS = 5
FEED_ROLLOUTS = 4


@dataclass(frozen=True)
class FeedLine:
    """A rollout with one of its completions: a right one where there is one."""

    rollout: ArchivedRollout
    text: str
    right: bool


@dataclass(frozen=True)
class Home:
    """What the home page shows.

    `judged` is how many questions were asked of nodes and graded in the last 24 hours. `pace` is
    None while it cannot be told.
    """

    board: Leaderboard
    connected: int
    judged: int
    pace: Pace | None
    moves: Moves
    feed: list[FeedLine]


def read_home(*, now: datetime) -> Home:
    """Read the home page in a constant number of queries."""
    season = shown_season()
    return Home(
        board=read_board(Window.SEASON, now=now, limit=LEADERS),
        connected=Node.objects.connected(now=now).count(),
        judged=_count_judged(season) if season else 0,
        pace=_read_pace(season, now=now) if season else None,
        moves=read_moves(season) if season else Moves(None, 0, None),
        feed=[
            describe_rollout(rollout)
            for rollout in (recent_rollouts(season.pk, limit=FEED_ROLLOUTS) if season else [])
        ],
    )


def describe_rollout(rollout: ArchivedRollout) -> FeedLine:
    """Choose the completion that the feed shows."""
    completions = rollout.completions
    shown = next((c for c in completions if c.get("solved")), completions[0])
    return FeedLine(rollout, text=str(shown["text"]), right=bool(shown.get("solved")))


def _count_judged(season: Season) -> int:
    """Add up the day's standings, which the judge keeps: answers are too many to count."""
    day = Standing.objects.filter(season=season, window=Window.DAY)
    return day.aggregate(n=Sum("n"))["n"] or 0


def _read_pace(season: Season, *, now: datetime) -> Pace | None:
    totals = Contribution.objects.filter(season=season).aggregate(
        relayed=Sum("delivered"), used=Sum("external_used")
    )
    return note_totals(
        season.pk,
        Totals(now.timestamp(), relayed=totals["relayed"] or 0, used=totals["used"] or 0),
    )
