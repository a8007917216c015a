"""Maintenance in a web process: dismisses all nodes and refuses new ones until it is over."""

from datetime import datetime

from swarm_protocol.errors import ErrorCode
from swarm_web.gateway.admission import Closed, admission
from swarm_web.gateway.roster import roster
from swarm_web.gateway.session import shared_reads
from swarm_web.maintenance.models import RETURN, Maintenance

_CODE = ErrorCode.SERVER_MAINTENANCE


def follow_maintenance(latest: Maintenance | None, *, now: datetime) -> None:
    """Start or stop refusing nodes, according to the latest maintenance, if any."""
    gate = admission()
    if latest is not None and latest.is_on(now=now):
        window_s = RETURN.total_seconds()
        gate.closed = Closed(_CODE, latest.told_to_nodes, wait_s=window_s)
        # Repeated, because nodes may have connected before this process knew of the maintenance.
        roster().dismiss_all(
            _CODE, latest.told_to_nodes, window_s=window_s, random=shared_reads().random
        )
    elif gate.closed is not None and gate.closed.code == _CODE:
        gate.closed = None
