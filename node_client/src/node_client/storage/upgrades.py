"""Reads and writes the file with a node's request for a newer client, and the request's result.

`swarm-node service` installs the client only after the node has ended, and then records the result.
So the request is kept in the state folder.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from node_client.storage.state import StateDir, read_record, write_record

# Pause before the same version is requested again.
RETRY_AFTER = timedelta(days=1)


class UpgradeRequest(msgspec.Struct, frozen=True):
    """A node's request for a newer client.

    `wanted` is the oldest version to accept; an empty text accepts any newer version. `tried_at` is
    None until the service has tried to install one; `problem` is the error, empty on success.
    """

    wanted: str
    tried_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    problem: str = ""


def read_upgrade(state: StateDir) -> UpgradeRequest | None:
    """Return the latest upgrade request, if any. Raises SettingsError if its file is unreadable."""
    return read_record(_file(state), UpgradeRequest)


def write_upgrade(state: StateDir, upgrade: UpgradeRequest) -> None:
    """Save an upgrade request in the state folder, in place of the previous one.

    Raises OSError if that fails.
    """
    write_record(_file(state), upgrade)


def should_request(latest: UpgradeRequest | None, *, wanted: str, now: datetime) -> bool:
    """Return whether to request version `wanted`.

    False if `latest` requested version `wanted` and the service tried it less than a day ago.
    """
    if latest is None or latest.tried_at is None or latest.wanted != wanted:
        return True
    return now - latest.tried_at >= RETRY_AFTER


def _file(state: StateDir) -> Path:
    return state.path / "upgrade.json"
