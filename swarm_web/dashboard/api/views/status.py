"""What the swarm does at this moment."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router

from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.status import StatusOut
from swarm_web.dashboard.reports.pill import read_pill

router = Router(tags=["status"])


@read(router, "/status", StatusOut)
def get_status(request: HttpRequest) -> dict[str, Any]:
    """Tell which round runs, and how many nodes are connected."""
    pill = read_pill(now=timezone.now())
    return {
        "season": pill.season,
        "round": pill.number,
        "phase": pill.phase,
        "until": pill.until,
        "connected": pill.connected,
        "as_of": pill.now,
        "client_version": CLIENT_VERSION,
        "protocol_version": PROTOCOL_VERSION,
    }
