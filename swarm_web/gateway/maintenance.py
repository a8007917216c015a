"""Maintenance in a web process: dismisses all nodes and refuses new ones until it is over."""

from datetime import datetime

from swarm_protocol.errors import ErrorCode
from swarm_web.gateway.admission import Closure, admission
from swarm_web.gateway.roster import roster
from swarm_web.maintenance.models import RETURN_TIME, Maintenance

_CODE = ErrorCode.SERVER_MAINTENANCE


def follow_maintenance(latest: Maintenance | None, *, now: datetime) -> None:
    """Dismiss and refuse all nodes if the maintenance `latest` is on; otherwise end the refusal.

    Call it every second, because nodes may connect before this process knows of the maintenance.
    """
    gate = admission()
    if latest is not None and latest.is_on(now=now):
        spread_s = RETURN_TIME.total_seconds()
        gate.closure = Closure(_CODE, latest.node_message, wait_s=spread_s)
        # Repeated, because nodes may have connected before this process knew of the maintenance.
        roster().dismiss_all(_CODE, latest.node_message, spread_s=spread_s)
    elif gate.closure is not None and gate.closure.code == _CODE:
        gate.closure = None
