"""The read API's /status: the current round, the number of connected nodes, and versions."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router

from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_web.dashboard.api.fields import (
    Moment,
    ReportSchema,
    RoundNumber,
    SeasonName,
    at,
    describe,
    read_under,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.home import Pill, read_pill

router = Router(tags=["status"])


class StatusOut(ReportSchema):
    """The current round, the number of connected nodes, and the client and protocol versions."""

    model_config = read_under(pill="season phase until connected".split())

    season: SeasonName | None
    round: RoundNumber | None = at("pill.number")
    phase: str = describe(
        "`scheduled`, `open` or `scoring`; `paused` while the season opens no rounds; "
        "`manual` while its operator, who makes them by hand, has scheduled none; else `none`.",
        "open",
    )
    until: Moment | None = describe("When the phase ends, if known.")
    connected: int = describe("How many nodes are connected.", 41)
    as_of: Moment = at("pill.now")
    client_version: str = describe("The version of swarm-node that matches this site.", "0.2.0")
    protocol_version: int = describe("The version of the wire protocol.", 1)


@dataclass(frozen=True)
class SiteStatus:
    """The current round, the number of connected nodes, and the client and protocol versions."""

    pill: Pill
    client_version: str = CLIENT_VERSION
    protocol_version: int = PROTOCOL_VERSION


@read(router, "/status", StatusOut)
def get_status(request: HttpRequest) -> SiteStatus:
    """Return the current round, the number of connected nodes, and the site's versions.

    These are the versions of the client and of the protocol that match this site.
    """
    return SiteStatus(read_pill(now=timezone.now()))
