"""The list of rounds of one season or of all, with phase, turnout and spread of scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from judge.models import Round, RoundSummary, Season
from judge.selectors.rounds import listed_rounds
from judge.selectors.seasons import shown_season, started_seasons
from swarm_web.core.errors import RequestError
from swarm_web.core.keyset import Key, Keyset, Listing, decode_numbers
from swarm_web.dashboard.charts.parts import TabledChart
from swarm_web.dashboard.charts.rounds import RoundSpread, draw_spreads

PAGE_ROUNDS = 50
# Maximum number of rounds in a chart: the newest ones of the page and of older pages.
CHARTED_ROUNDS = 120
NEWEST_FIRST = Keyset("-number")


@dataclass(frozen=True)
class RoundLine:
    """A round in the list; `summary` is None unless the round is closed and has one."""

    round: Round
    summary: RoundSummary | None

    @property
    def middle(self) -> tuple[float, float] | None:
        """First and third quartiles of the trained nodes' scores; None without such scores."""
        if self.summary is None or self.summary.low is None or self.summary.high is None:
            return None
        return self.summary.low, self.summary.high


@dataclass(frozen=True)
class RoundsReport:
    """One page of rounds, newest first.

    `season` is the requested season, None for all seasons; `shown` is the season whose rules the
    page shows. `seasons` are the latest seasons, to choose from. `newer` and `older` are the values
    of the parameter `before` for the neighbouring pages, None if there is no such page. `newer` is
    0 if the neighbouring page is the newest one, which needs no parameter.
    """

    season: Season | None
    shown: Season | None
    seasons: list[Season]
    lines: list[RoundLine]
    newer: int | None
    older: int | None
    drawing: TabledChart


def read_cursor(text: str | None) -> int | None:
    """Return the round number in the parameter `before`; a page lists the rounds below this number.

    Returns None if the parameter is empty. Raises RequestError if it is not a number.
    """
    if not text:
        return None
    try:
        (number,) = decode_numbers(text)
    except ValueError as problem:
        raise RequestError(
            "query.before",
            f"{text[:40]!r} is not a round's number.",
            fix="Give the number of a round, such as before=120.",
        ) from problem
    return number


def read_season(name: str | None) -> Season | None:
    """Return the started season with this name, or None (all seasons) if the name is empty.

    Raises RequestError if no started season has the name.
    """
    if not name:
        return None
    season = started_seasons().filter(name=name).first()
    if season is None:
        raise RequestError(
            "query.season",
            f"There is no season {name[:40]!r}.",
            fix="Leave it out for all seasons, or take a name from /rounds/.",
        )
    return season


def list_all_rounds() -> Listing[Round]:
    """List the rounds of all seasons, newest first."""
    return Listing(Round.objects.select_related("season"), NEWEST_FIRST)


def list_started_seasons() -> Listing[Season]:
    """List the seasons that have started, the most recently created one first."""
    return Listing(started_seasons(), Keyset("-pk"))


def read_rounds(*, season: Season | None, before: int | None) -> RoundsReport:
    """Read a page of rounds, newest first, in a constant number of queries.

    The page lists the newest rounds whose numbers are lower than `before`. If `before` is None, it
    lists the newest of all. If `season` is None, the page has the rounds of all seasons.
    """
    rounds = listed_rounds(season)
    after = None if before is None else (before,)
    page = NEWEST_FIRST.read(rounds, after=after, limit=PAGE_ROUNDS)
    closed = NEWEST_FIRST.after(rounds, after).filter(phase=Round.Phase.CLOSED)
    return RoundsReport(
        season=season,
        shown=season or shown_season(),
        seasons=list(started_seasons()[:PAGE_ROUNDS]),
        lines=[RoundLine(r, _read_summary(r)) for r in page.rows],
        newer=_find_newer(rounds, after) if after else None,
        older=page.next[0] if page.next else None,
        drawing=draw_rounds(closed[:CHARTED_ROUNDS]),
    )


def draw_rounds(closed: Iterable[Round]) -> TabledChart:
    """Draw the scores of trained nodes in closed rounds, given newest first.

    Rounds without such scores are left out.
    """
    spreads = [spread for spread in map(_make_spread, closed) if spread]
    return TabledChart(
        draw=partial(draw_spreads, spreads[::-1]),
        columns=[_("Round"), _("Median"), _("Middle half"), _("Best"), "n"],
        rows=[(s.round, s.median, (s.low, s.high), s.best, s.n) for s in spreads],
    )


def _read_summary(judge_round: Round) -> RoundSummary | None:
    """Return the summary of a round; None unless the round is closed and has one."""
    if judge_round.phase != Round.Phase.CLOSED:
        return None
    return getattr(judge_round, "summary", None)


def _make_spread(judge_round: Round) -> RoundSpread | None:
    summary = _read_summary(judge_round)
    if summary is None:
        return None
    low, median, high, best = summary.low, summary.median, summary.high, summary.best
    if low is None or median is None or high is None or best is None:
        return None
    return RoundSpread(judge_round.number, low, median, high, best, n=summary.trained)


def _find_newer(rounds: QuerySet[Round], after: Key) -> int | None:
    """Return the query parameter `before` of the next newer page; None if there is no such page.

    The result is 0 if the next newer page is the newest one. `after` is the key after which the
    current page begins: its own parameter `before`, as a tuple.
    """
    newer = NEWEST_FIRST.find_earlier(rounds, after, limit=PAGE_ROUNDS)
    return None if newer is None else next(iter(newer), 0)
