"""The file by which a node requests a newer client from its service, with the service's answer.

It is in the state folder, because the node ends before the service installs anything.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from node_client.storage.state import StateDir, read_record, write_record

# Pause after an update that failed or found nothing newer.
RETRY_AFTER = timedelta(days=1)


class UpgradeRequest(msgspec.Struct, frozen=True):
    """`wanted` is the oldest accepted version, empty for any newer one.

    `tried_at` (ISO 8601, UTC) is null until the service has tried; `problem` is its error.
    """

    wanted: str
    tried_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    problem: str = ""


def read_upgrade(state: StateDir) -> UpgradeRequest | None:
    """Return the latest request. Raises SettingsError when it cannot be read."""
    return read_record(_file(state), UpgradeRequest)


def write_upgrade(state: StateDir, upgrade: UpgradeRequest) -> None:
    """Save a request. Raises OSError."""
    write_record(_file(state), upgrade)


def should_request(latest: UpgradeRequest | None, *, wanted: str, now: datetime) -> bool:
    """Return whether to request a version: not one that failed less than a day ago."""
    if latest is None or latest.tried_at is None or latest.wanted != wanted:
        return True
    return now - latest.tried_at >= RETRY_AFTER


def _file(state: StateDir) -> Path:
    return state.path / "upgrade.json"
