"""A node that runs as a service ends when a newer client is asked for, to let it be installed."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from node_client.errors import CoordinatorRefusedError, NodeError, UpgradeDueError
from node_client.runtime.beginning import read_clock
from node_client.settings.config import Settings
from node_client.storage.upgrades import Upgrade, is_worth_asking, read_upgrade, write_upgrade
from swarm_protocol.errors import ErrorCode

# Refusals that a newer client may end.
OUTDATED = frozenset({ErrorCode.CLIENT_TOO_OLD, ErrorCode.PROTOCOL_VERSION})

log = logging.getLogger(__name__)


class Upgrading:
    """Asks the service for a newer client, if the owner lets it install one (`auto_update`)."""

    def __init__(self, settings: Settings, *, clock: Callable[[], datetime] = read_clock) -> None:
        self._settings = settings
        self._clock = clock
        self.asked = asyncio.Event()

    def note(self, oldest: str | None) -> None:
        """Take note of the version below which nodes will be refused, if this one is older."""
        if oldest is not None and self._ask(oldest):
            self.asked.set()

    def instead_of(self, refusal: CoordinatorRefusedError) -> NodeError:
        """Return what ends the node: its refusal, or a newer client that may end that."""
        if refusal.code in OUTDATED and self._ask(""):
            return UpgradeDueError(refusal.message)
        return refusal

    def _ask(self, wanted: str) -> bool:
        """Leave a note for the service, and return whether there is one to be acted on."""
        if not self._settings.auto_update:
            return False
        state = self._settings.state
        try:
            if not is_worth_asking(read_upgrade(state), wanted=wanted, now=self._clock()):
                return False
            write_upgrade(state, Upgrade(wanted))
        except (OSError, NodeError) as problem:
            log.warning("the service cannot be asked for a newer client: %s", problem)
            return False
        return True
