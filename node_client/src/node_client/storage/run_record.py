"""What a running client notes about itself, so that `swarm-node status` can tell how it is.

The record alone proves nothing after a crash: whether a process holds the state folder's lock does.
"""

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from node_client.storage.state import StateDir, read_record, write_record

FILE = "run.json"

Phase = Literal["starting", "running", "paused", "stopped"]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The latest run. Times are ISO 8601 in UTC.

    `since` is when the phase began and `noted_at` when this was written. `problem` says why the run
    ended, if not as asked; `offline_since` when the coordinator was lost.
    """

    pid: int
    started_at: str
    phase: Phase
    since: str
    noted_at: str
    last_step_at: str | None = None
    pause: str = ""
    until: str | None = None
    offline_since: str | None = None
    problem: str = ""


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is. `killed` is one that ended without a word; `since` is its last sign then."""

    state: Literal["starting", "running", "paused", "stopped", "killed"]
    since: str
    pid: int | None = None
    last_step_at: str | None = None
    why: str = ""
    until: str | None = None
    offline_since: str | None = None


def write_run(state: StateDir, record: RunRecord) -> None:
    """Note how the run is. Raises OSError."""
    write_record(state.path / FILE, record)


def read_run(state: StateDir) -> RunState | None:
    """Return how the latest run in a state folder is, None before the first.

    Raises SettingsError when the folder cannot be read.
    """
    record = read_record(state.path / FILE, RunRecord)
    if record is None:
        return None
    if not state.is_held():
        # Read again: the run may have ended properly between the two looks.
        record = read_record(state.path / FILE, RunRecord) or record
        if record.phase != "stopped":
            return RunState(state="killed", since=record.noted_at, last_step_at=record.last_step_at)
    if record.phase == "stopped":
        return RunState(
            state="stopped",
            since=record.since,
            last_step_at=record.last_step_at,
            why=record.problem,
        )
    return RunState(
        state=record.phase,
        since=record.since,
        pid=record.pid,
        last_step_at=record.last_step_at,
        why=record.pause,
        until=record.until,
        offline_since=record.offline_since,
    )


def find_standstill(run: RunState | None, *, trains: bool, within: timedelta, now: datetime) -> str:
    """Say why a node does not do its work, or nothing if it does. `now` is aware.

    A pause is no standstill, and neither is the first step of a run within its time.
    """
    if run is None:
        return "no run has started here"
    if run.state in ("stopped", "killed"):
        return f"{run.state} since {run.since}" + (f": {run.why}" if run.why else "")
    if run.state == "paused" or (run.state == "running" and not trains):
        return ""
    signs = (run.since, run.last_step_at)
    latest = max(datetime.fromisoformat(sign) for sign in signs if sign is not None)
    if now - latest <= within:
        return ""
    did = "no step" if run.state == "running" else "still starting"
    return f"{did} since {latest.astimezone(UTC).isoformat(timespec='seconds')}"
