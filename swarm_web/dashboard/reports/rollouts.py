"""Rollouts as pages show them: searches, cards with verdicts, and who learned from whom."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.http import Http404

from judge.models import Season
from judge.selectors.seasons import shown_season
from swarm_web.core.errors import RequestError
from swarm_web.core.keyset import Listing, decode_numbers, encode_numbers
from swarm_web.dashboard.charts.flow import FlowLink, FlowPicture, draw_flow
from swarm_web.relay.models import ArchivedRollout
from swarm_web.relay.selectors import (
    NEWEST_FIRST,
    FoundCompletions,
    RolloutFilters,
    exchanges_in,
    find_rollout,
    search_rollouts,
)

PAGE_CARDS = 20
# On the cards of a list: enough to compare a right and a wrong one.
SHOWN_COMPLETIONS = 2
LISTED_SEASONS = 50
_OUTCOMES = {outcome.value for outcome in FoundCompletions}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The key after which a page begins: the time and the id of a rollout.
RolloutKey = tuple[datetime, int]
RewardSpread = Literal["mixed", "right", "wrong"]
# Number of links that a picture can show distinctly.
SHOWN_LINKS = 20
_HOUR = timedelta(hours=1)
_FORMAT = "%Y-%m-%dT%H"
_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}", re.ASCII)


# ---- the archive


@dataclass(frozen=True)
class Shown:
    """One completion with our verifier's verdict; `number` is its position, from 1."""

    number: int
    text: str
    finish_reason: str
    solved: bool
    verdict: str


@dataclass(frozen=True)
class Card:
    """A rollout with the completions that are shown; `hidden` ones are left out."""

    rollout: ArchivedRollout
    completions: list[Shown]

    @property
    def hidden(self) -> int:
        """Number of completions that are not shown."""
        return len(self.rollout.completions) - len(self.completions)

    @property
    def spread(self) -> RewardSpread:
        """Whether rewards differ: otherwise nothing can be learned from this rollout."""
        solved = self.rollout.solved or 0
        if 0 < solved < self.rollout.total:
            return "mixed"
        return "right" if solved else "wrong"

    @property
    def more_learners(self) -> int:
        """Number of nodes that learned from it and are not named."""
        return max(0, self.rollout.learned_by - len(self.rollout.learners))


@dataclass(frozen=True)
class RolloutQuery:
    """The query of a page of rollouts; `season` is a name, empty for the shown season."""

    filters: RolloutFilters
    season: str = ""
    after: RolloutKey | None = None

    @property
    def narrowed(self) -> bool:
        """Whether the query filters by anything other than the season."""
        asked = self.filters
        return any((asked.words, asked.author, asked.dataset, asked.model, asked.outcome))


@dataclass(frozen=True)
class RolloutList:
    """A page of cards; `later` is the cursor of the next page, empty on the last one."""

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
    """Return the parsed query string of the page. Raises RequestError."""
    outcome = params.get("outcome", "")
    if outcome not in _OUTCOMES:
        raise RequestError(
            "query.outcome",
            f"There is no outcome {outcome[:40]!r}.",
            fix=f"Use one of {', '.join(filter(None, FoundCompletions))}.",
        )
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
    """Return a text without surrounding spaces and without NUL, which Postgres rejects."""
    return text.replace("\0", "").strip()[:200]


def read_rollouts(query: RolloutQuery) -> RolloutList:
    """Read a page of rollouts in a constant number of queries. Raises RequestError."""
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
        [make_card(rollout, most=SHOWN_COMPLETIONS) for rollout in page.rows],
        encode_cursor(*page.next) if page.next else "",
        names,
    )


def load_card(pk: int) -> Card:
    """Return a rollout's card with all of its completions. Raises Http404."""
    found = find_rollout(pk)
    if found is None:
        raise Http404
    return make_card(found)


def list_archived(
    *, author: str, learner: str, dataset: str, outcome: str
) -> Listing[ArchivedRollout]:
    """Return the archive's rollouts that match, newest first."""
    filters = RolloutFilters(
        author=author, learner=learner, dataset=dataset, outcome=FoundCompletions(outcome)
    )
    return Listing(search_rollouts(filters), NEWEST_FIRST)


def make_card(rollout: ArchivedRollout, *, most: int | None = None) -> Card:
    """Return a rollout's card with up to `most` completions, right and wrong ones if possible."""
    shown = [
        Shown(
            number,
            text=completion["text"],
            finish_reason=completion["finish_reason"],
            solved=bool(completion["solved"]),
            verdict=completion["verdict"] or "",
        )
        for number, completion in enumerate(rollout.completions, start=1)
    ]
    if most is None or len(shown) <= most:
        return Card(rollout, shown)
    first_of_each = {completion.solved: completion for completion in reversed(shown)}
    chosen = sorted(first_of_each.values(), key=lambda completion: completion.number)
    rest = [completion for completion in shown if completion not in chosen]
    return Card(rollout, [*chosen, *rest][:most])


def encode_cursor(published_at: datetime, pk: int) -> str:
    """Return a rollout's key as text: microseconds since the epoch, and the id."""
    since_epoch = (published_at - _EPOCH) // timedelta(microseconds=1)
    return encode_numbers(since_epoch, pk)


def decode_cursor(text: str) -> RolloutKey | None:
    """Return the key after which a page begins, None for the first page. Raises RequestError."""
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
    """The links of the hour that begins at `hour`, strongest first."""

    season: Season | None
    hour: datetime
    links: list[FlowLink]
    picture: FlowPicture
    is_now: bool

    @property
    def end(self) -> datetime:
        """When the hour ends."""
        return self.hour + _HOUR

    @property
    def earlier(self) -> str:
        """The previous hour, as an address requests it."""
        return format_hour(self.hour - _HOUR)

    @property
    def later(self) -> str:
        """The next hour; empty if it has not begun."""
        return "" if self.is_now else format_hour(self.end)


def format_hour(hour: datetime) -> str:
    """Write an hour in UTC, as an address requests it."""
    return f"{hour.astimezone(UTC):{_FORMAT}}"


def read_hour(text: str, *, now: datetime) -> datetime:
    """Return the hour that an address requests, by default the current one. Raises RequestError."""
    this = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if not text:
        return this
    hour = _parse(text)
    if hour is None or hour > this or hour.year < 2000:
        raise RequestError(
            "query.hour",
            f"There is no hour {text[:40]!r} to show.",
            fix=f"Write a past hour in UTC, such as {format_hour(this)}, or leave it out.",
        )
    return hour


def read_flow(*, hour: datetime, now: datetime) -> FlowReport:
    """Read an hour's strongest links in a constant number of queries."""
    season = shown_season()
    flows = exchanges_in(season.pk, hour=hour, limit=SHOWN_LINKS) if season else []
    links = [FlowLink(flow.giver, flow.taker, flow.used) for flow in flows]
    return FlowReport(season, hour, links, draw_flow(links), is_now=now < hour + _HOUR)


def _parse(text: str) -> datetime | None:
    if not _TEXT.fullmatch(text):
        return None
    try:
        return datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
