"""Reports about rollouts: searches in the archive, cards of rollouts, and who learned from whom."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.http import Http404

from judge.models import Season
from judge.selectors.seasons import shown_season
from swarm_web.core.errors import RequestError, check_choice
from swarm_web.core.keyset import Listing, decode_numbers, encode_numbers
from swarm_web.dashboard.charts.flow import FlowPicture, draw_flow
from swarm_web.relay.models import ArchivedRollout
from swarm_web.relay.selectors.archive import (
    NEWEST_FIRST,
    FoundCompletions,
    RolloutFilters,
    find_rollout,
    search_rollouts,
)
from swarm_web.relay.selectors.history import Flow, exchanges_in

PAGE_CARDS = 20
# Number of completions on a card in a list: enough to compare a right and a wrong one.
SHOWN_COMPLETIONS = 2
LISTED_SEASONS = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The key after which a page begins: the time and the id of a rollout.
RolloutKey = tuple[datetime, int]
RewardSpread = Literal["mixed", "right", "wrong"]
# Number of links that a picture can show distinctly.
SHOWN_LINKS = 20
_HOUR = timedelta(hours=1)
_HOUR_FORMAT = "%Y-%m-%dT%H"


# ---- the archive


@dataclass(frozen=True)
class ShownCompletion:
    """One completion with the verdict of the site's verifier; `number` is its position, from 1."""

    number: int
    text: str
    finish_reason: str
    solved: bool
    verdict: str


@dataclass(frozen=True)
class Card:
    """A rollout with those of its completions that are shown."""

    rollout: ArchivedRollout
    completions: list[ShownCompletion]

    @property
    def hidden(self) -> int:
        """Number of completions that are not shown."""
        return len(self.rollout.completions) - len(self.completions)

    @property
    def spread(self) -> RewardSpread:
        """`right` if all completions are right, `wrong` if none is, otherwise `mixed`."""
        solved = self.rollout.solved or 0
        if 0 < solved < self.rollout.total:
            return "mixed"
        return "right" if solved else "wrong"

    @property
    def more_learners(self) -> int:
        """Number of nodes that learned from the rollout and that the card does not name."""
        return max(0, self.rollout.learned_by - len(self.rollout.learners))


@dataclass(frozen=True)
class RolloutQuery:
    """The parsed query string of a page of rollouts.

    `season` is a season's name, empty for the shown season. The page begins after the rollout with
    the key `after`, or with the first rollout if `after` is None.
    """

    filters: RolloutFilters
    season: str = ""
    after: RolloutKey | None = None

    @property
    def narrowed(self) -> bool:
        """Whether the query filters by anything other than the season."""
        return self.filters != RolloutFilters()


@dataclass(frozen=True)
class RolloutList:
    """A page of rollouts, as cards; `later` is the cursor of the next page, empty on the last one.

    `season` is the season that was searched, None before the first season. `seasons` are the names
    of the latest seasons, to choose from.
    """

    query: RolloutQuery
    season: Season | None
    cards: list[Card]
    later: str
    seasons: list[str]

    @property
    def datasets(self) -> list[str]:
        """The datasets of the season, by name."""
        return sorted({task["dataset"] for task in self.season.tasks}) if self.season else []


def read_rollout_query(params: Mapping[str, str]) -> RolloutQuery:
    """Return the parsed query string of a page of rollouts.

    Raises RequestError for an unknown `outcome` and for an invalid cursor `after`.
    """
    outcome = params.get("outcome", "")
    check_choice("outcome", outcome, FoundCompletions)
    filters = RolloutFilters(
        words=_clean(params.get("q", "")),
        author=_clean(params.get("author", "")),
        dataset=_clean(params.get("dataset", "")),
        model=_clean(params.get("model", "")),
        outcome=FoundCompletions(outcome),
    )
    return RolloutQuery(
        filters,
        season=_clean(params.get("season", "")),
        after=decode_cursor(params.get("after", "")),
    )


def _clean(text: str) -> str:
    """Return a text without outer spaces and NUL (Postgres rejects it), cut to 200 characters."""
    return text.replace("\0", "").strip()[:200]


def read_rollouts(query: RolloutQuery) -> RolloutList:
    """Read a page of rollouts in a constant number of queries.

    Raises RequestError if the query names a season that does not exist or has not begun.
    """
    started = Season.objects.exclude(state=Season.State.DRAFT).order_by("-started_at")
    names = list(started.values_list("name", flat=True)[:LISTED_SEASONS])
    season = started.filter(name=query.season).first() if query.season else shown_season()
    if season is None:
        if query.season:
            raise RequestError(
                "query.season",
                f"There is no season {query.season[:40]!r}.",
                fix="Use the name of a season that has begun, or leave it out for the latest one.",
            )
        return RolloutList(query, None, [], "", names)
    filters = replace(query.filters, season_id=season.pk)
    page = NEWEST_FIRST.read(search_rollouts(filters), after=query.after, limit=PAGE_CARDS)
    return RolloutList(
        query,
        season,
        [make_card(rollout, limit=SHOWN_COMPLETIONS) for rollout in page.rows],
        encode_cursor(*page.next) if page.next else "",
        names,
    )


def load_card(pk: int) -> Card:
    """Return a rollout's card with all of its completions.

    Raises Http404 if the archive has no verified rollout with this key.
    """
    found = find_rollout(pk)
    if found is None:
        raise Http404
    return make_card(found)


def list_archived(
    *, author: str, learner: str, dataset: str, outcome: str
) -> Listing[ArchivedRollout]:
    """List the verified rollouts of the archive that match the arguments, newest first.

    An empty argument matches all rollouts. `author` is the name of the node that published the
    rollout, `learner` the name of a node that trained on it, and `outcome` a value of
    FoundCompletions.
    """
    filters = RolloutFilters(
        author=author, learner=learner, dataset=dataset, outcome=FoundCompletions(outcome)
    )
    return Listing(search_rollouts(filters), NEWEST_FIRST)


def make_card(rollout: ArchivedRollout, *, limit: int | None = None) -> Card:
    """Return a rollout's card with at most `limit` completions; None shows all.

    If the rollout has more than `limit`, its first right and its first wrong completion are moved
    to the front. Apart from this, the completions keep their order.
    """
    shown = [
        ShownCompletion(
            number,
            text=completion["text"],
            finish_reason=completion["finish_reason"],
            solved=bool(completion["solved"]),
            verdict=completion["verdict"] or "",
        )
        for number, completion in enumerate(rollout.completions, start=1)
    ]
    if limit is None or len(shown) <= limit:
        return Card(rollout, shown)
    first_of_each = {completion.solved: completion for completion in reversed(shown)}
    chosen = sorted(first_of_each.values(), key=lambda completion: completion.number)
    rest = [completion for completion in shown if completion not in chosen]
    return Card(rollout, [*chosen, *rest][:limit])


def encode_cursor(published_at: datetime, pk: int) -> str:
    """Return the cursor of the page that begins after a rollout.

    The cursor encodes `published_at`, in microseconds since 1970 (UTC), and the rollout's id `pk`.
    """
    since_epoch = (published_at - _EPOCH) // timedelta(microseconds=1)
    return encode_numbers(since_epoch, pk)


def decode_cursor(text: str) -> RolloutKey | None:
    """Return the key that `encode_cursor` wrote as `text`; None if `text` is empty (first page).

    Raises RequestError for an invalid cursor.
    """
    if not text:
        return None
    try:
        since_epoch, pk = decode_numbers(text, count=2)
        return _EPOCH + timedelta(microseconds=since_epoch), pk
    except (ValueError, OverflowError) as problem:  # OverflowError: beyond the calendar's end.
        raise RequestError(
            "query.after",
            f"There is no page after {text[:40]!r}.",
            fix="Leave it out for the first page, and follow the page's own links from there.",
        ) from problem


# ---- who learned from whom


@dataclass(frozen=True)
class FlowReport:
    """Who learned from whom in the hour that begins at `hour`.

    Each of `links` counts the rollouts of one node on which another node trained. There are at most
    SHOWN_LINKS links, the largest first; `picture` shows them. `is_now` is whether the hour is
    still running.
    """

    season: Season | None
    hour: datetime
    links: list[Flow]
    picture: FlowPicture
    is_now: bool

    @property
    def end(self) -> datetime:
        """When the hour ends."""
        return self.hour + _HOUR

    @property
    def earlier(self) -> str:
        """The hour before `hour`, as `format_hour` writes it."""
        return format_hour(self.hour - _HOUR)

    @property
    def later(self) -> str:
        """The hour after `hour`, as `format_hour` writes it; empty if that hour has not begun."""
        return "" if self.is_now else format_hour(self.end)


def format_hour(hour: datetime) -> str:
    """Write an hour, in UTC, in the form of the query parameter `hour`: `2026-11-21T09`."""
    return f"{hour.astimezone(UTC):{_HOUR_FORMAT}}"


def read_hour(text: str, *, now: datetime) -> datetime:
    """Return the start of the hour that `text` names, or of the current hour if `text` is empty.

    Raises RequestError for a text in another form than that of `format_hour`, and for hours in the
    future or before 2000.
    """
    current = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if not text:
        return current
    hour = _parse_hour(text)
    if hour is None or hour > current or hour.year < 2000:
        raise RequestError(
            "query.hour",
            f"There is no hour {text[:40]!r} to show.",
            fix=f"Write a past hour in UTC, such as {format_hour(current)}, or leave it out.",
        )
    return hour


def read_flow(*, hour: datetime, now: datetime) -> FlowReport:
    """Return who learned from whom in an hour, in a constant number of queries.

    The report is about the shown season. Before the first season it has no links.
    """
    season = shown_season()
    links = exchanges_in(season.pk, hour=hour, limit=SHOWN_LINKS) if season else []
    return FlowReport(season, hour, links, draw_flow(links), is_now=now < hour + _HOUR)


def _parse_hour(text: str) -> datetime | None:
    try:
        hour = datetime.strptime(text, _HOUR_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    # The parser also accepts other forms, such as hours with one digit.
    return hour if format_hour(hour) == text else None
