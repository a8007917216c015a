"""Reasons for a pause, and the file in the state folder that requests one.

The file remains when the node stops. A node that starts before the pause ends is paused at once.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from node_client.errors import SettingsError
from node_client.storage.state import StateDir, write_record

Reason = Literal["asked", "hours", "battery"]
REASON_TEXTS: dict[Reason, str] = {
    "asked": "its owner paused it",
    "hours": "it is outside its hours",
    "battery": "the machine runs on its battery",
}


@dataclass(frozen=True)
class Pause:
    """A reason not to train, and when the pause ends; `until` is None if that is not known."""

    reason: Reason
    until: datetime | None = None

    @property
    def why(self) -> str:
        """The reason in words."""
        return REASON_TEXTS[self.reason]


class PauseRequest(msgspec.Struct, frozen=True):
    """The content of `pause.json`, an owner's request; times are ISO 8601 with a time zone.

    Without `until`, the pause lasts until the owner withdraws the request.
    """

    asked_at: str
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


def request_pause(state: StateDir, *, now: datetime, until: datetime | None) -> None:
    """Request that the node of a state folder pauses until `until`; None sets no end.

    Raises SettingsError when the request cannot be written.
    """
    try:
        write_record(_file(state), PauseRequest(now.isoformat(timespec="seconds"), until))
    except OSError as problem:
        raise _unwritable(_file(state), problem) from problem


def withdraw_pause(state: StateDir) -> bool:
    """Remove the request for a pause, and return whether there was one.

    Raises SettingsError when it cannot be removed.
    """
    try:
        _file(state).unlink()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise _unwritable(_file(state), problem) from problem
    return True


def read_pause(state: StateDir, *, now: datetime) -> Pause | None:
    """Return the pause that the owner requested; None if there is none or it has ended.

    A file that exists but cannot be read counts as a request without an end.
    """
    try:
        until = msgspec.json.decode(_file(state).read_bytes(), type=PauseRequest).until
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return Pause("asked")
    if until is not None and until <= now:
        return None
    return Pause("asked", until)


def _file(state: StateDir) -> Path:
    return state.path / "pause.json"


def _unwritable(path: Path, problem: OSError) -> SettingsError:
    return SettingsError(
        f"{path} cannot be changed: {problem.strerror or problem}.",
        fix="Run this as the user that runs the node.",
    )
