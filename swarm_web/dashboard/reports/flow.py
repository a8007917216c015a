"""Who learned from whom in one hour: the strongest links of the season, as picture and table."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from judge.models import Season
from judge.selectors import shown_season
from swarm_web.dashboard.charts.flow import FlowPicture, Link, draw_flow
from swarm_web.errors import RequestError
from swarm_web.relay.selectors import exchanges_in

# As many as a picture can tell apart.
SHOWN_LINKS = 20
_HOUR = timedelta(hours=1)
_FORMAT = "%Y-%m-%dT%H"
_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}", re.ASCII)


@dataclass(frozen=True)
class FlowReport:
    """The links of the hour that begins at `hour`, strongest first."""

    season: Season | None
    hour: datetime
    links: list[Link]
    picture: FlowPicture
    is_now: bool

    @property
    def end(self) -> datetime:
        """When the hour ends."""
        return self.hour + _HOUR

    @property
    def earlier(self) -> str:
        """The hour before, as an address asks for it."""
        return format_hour(self.hour - _HOUR)

    @property
    def later(self) -> str:
        """The hour after; empty where it has not begun."""
        return "" if self.is_now else format_hour(self.end)


def format_hour(hour: datetime) -> str:
    """Write an hour, in UTC, as an address asks for it."""
    return f"{hour.astimezone(UTC):{_FORMAT}}"


def read_hour(text: str, *, now: datetime) -> datetime:
    """Return the hour that an address asks for, or else this one. Raises RequestError."""
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
    links = [Link(flow.giver, flow.taker, flow.used) for flow in flows]
    return FlowReport(season, hour, links, draw_flow(links), is_now=now < hour + _HOUR)


def _parse(text: str) -> datetime | None:
    if not _TEXT.fullmatch(text):
        return None
    try:
        return datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
