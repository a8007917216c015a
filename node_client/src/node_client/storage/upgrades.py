"""The note by which a node asks its service for a newer client, and by which the service answers.

It lies in the state folder, because the node ends before the service installs anything.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from node_client.storage.state import StateDir, read_record, write_record

# An update that failed, or brought nothing newer, is tried again after so long.
TRY_AGAIN_AFTER = timedelta(days=1)


class Upgrade(msgspec.Struct, frozen=True):
    """`wanted` is the oldest version that will do, empty for any newer one.

    `tried_at` (ISO 8601, UTC) is null until the service has tried; `problem` says what was wrong.
    """

    wanted: str
    tried_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    problem: str = ""


def read_upgrade(state: StateDir) -> Upgrade | None:
    """Return the latest note. Raises SettingsError when it cannot be read."""
    return read_record(_file(state), Upgrade)


def write_upgrade(state: StateDir, upgrade: Upgrade) -> None:
    """Keep a note. Raises OSError."""
    write_record(_file(state), upgrade)


def is_worth_asking(latest: Upgrade | None, *, wanted: str, now: datetime) -> bool:
    """Tell whether the service should be asked for a version: not for what has just failed."""
    if latest is None or latest.tried_at is None or latest.wanted != wanted:
        return True
    return now - latest.tried_at >= TRY_AGAIN_AFTER


def _file(state: StateDir) -> Path:
    return state.path / "upgrade.json"
