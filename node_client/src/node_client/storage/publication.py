"""What of a model was made public last, and when the next time has come. Pure, but for the file."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from node_client.storage.manifest import Merit
from node_client.storage.state import write_private


class Publication(msgspec.Struct, frozen=True):
    """The file `hub.json`. `at` is when the model was put there, ISO 8601 in UTC."""

    repository: str
    step: int
    merit: Merit
    at: str


def is_better(merit: Merit, last: Publication | None) -> bool:
    """Tell whether a model has improved since it was published.

    In a new season everything counts as better. Within one, a merit of another kind cannot be
    compared with the published one, so it does not.
    """
    if last is None or last.merit.season != merit.season:
        return True
    return merit.is_like(last.merit) and merit.value > last.merit.value


def is_rested(last: datetime | None, *, now: datetime, interval: timedelta) -> bool:
    """Tell whether the last attempt is long enough ago."""
    return last is None or now - last >= interval


def read_publication(path: Path, *, repository: str) -> Publication | None:
    """Return what was last put into a repository; what cannot be read was not."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Publication)
        datetime.fromisoformat(found.at).astimezone(UTC)
    except (OSError, ValueError):  # msgspec's DecodeError is one
        return None
    return found if found.repository == repository else None


def write_publication(path: Path, publication: Publication) -> None:
    """Remember what was published. Raises OSError."""
    write_private(path, msgspec.json.encode(publication) + b"\n")
