"""Ends a node when a newer client is required, so that `swarm-node service` can install one."""

import asyncio
import logging
from datetime import UTC, datetime

from node_client.display.lines import describe_upgrade
from node_client.errors import CoordinatorRefusedError, NodeError, UpgradeDueError
from node_client.settings.config import Settings
from node_client.site import Site
from node_client.storage.installation import find_installation, upgrade_command
from node_client.storage.upgrades import UpgradeRequest, read_upgrade, should_request, write_upgrade
from swarm_protocol.errors import ErrorCode

# Refusals that a newer client may resolve.
UPGRADE_CODES = frozenset({ErrorCode.CLIENT_TOO_OLD, ErrorCode.PROTOCOL_VERSION})

log = logging.getLogger(__name__)


class UpgradeRequests:
    """Asks the service that runs this client (`swarm-node service`) to install a newer client.

    It does so only if the setting `auto_update` allows it. `request_if_required` sets the event
    `requested`, which makes a running node end. `error_for` does not set it, because the
    coordinator's refusal already ends the node.
    """

    def __init__(self, settings: Settings, *, site: Site) -> None:
        self._settings = settings
        self._site = site
        self.requested = asyncio.Event()

    def describe(self, oldest: str | None) -> str | None:
        """Return a warning if the coordinator will soon refuse this client's version, else None.

        `oldest` is the oldest version that the coordinator will still accept, or None if it will
        accept this client. The warning has the command that upgrades the client.
        """
        return describe_upgrade(oldest, command=self._command()) if oldest is not None else None

    def request_if_required(self, oldest: str | None) -> None:
        """Ask the service to install version `oldest` or a newer one; set the event `requested`.

        `oldest` is the oldest version that the coordinator will still accept, or None if it will
        accept this client. Nothing happens if `oldest` is None, if `auto_update` is off, or if the
        service tried to install the same version less than a day ago. If the request file cannot be
        read or written, a warning is logged and the event is not set.
        """
        if oldest is not None and self._request(oldest):
            self.requested.set()

    def error_for(self, refusal: CoordinatorRefusedError) -> NodeError:
        """Return the error that ends the node after a refusal.

        Returns UpgradeDueError if a newer client may resolve the refusal and was requested from the
        service. Otherwise returns `refusal` or, for the code CLIENT_TOO_OLD, a copy whose
        `fix` has the command that upgrades the client.
        """
        if refusal.code in UPGRADE_CODES and self._request(""):
            return UpgradeDueError(refusal.message)
        if refusal.code != ErrorCode.CLIENT_TOO_OLD:
            return refusal
        fix = f"Update it with this command: {self._command()}"
        return CoordinatorRefusedError(refusal.message, fix=fix, code=refusal.code)

    def _command(self) -> str:
        return upgrade_command(self._site, find_installation())

    def _request(self, wanted: str) -> bool:
        """Write a request for version `wanted` or a newer one; return whether it was written.

        The service reads the request. An empty `wanted` requests any newer version.
        """
        if not self._settings.auto_update:
            return False
        state = self._settings.state
        try:
            if not should_request(read_upgrade(state), wanted=wanted, now=datetime.now(UTC)):
                return False
            write_upgrade(state, UpgradeRequest(wanted))
        except (OSError, NodeError) as problem:
            log.warning("no newer client can be requested from the service: %s", problem)
            return False
        return True
