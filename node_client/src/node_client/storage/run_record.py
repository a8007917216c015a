"""The record that a running client writes for `swarm-node status`.

After a crash the record alone is not reliable; the state folder's lock shows whether a client runs.
"""

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from node_client.storage.state import StateDir, read_record, write_record

FILE = "run.json"

Phase = Literal["starting", "running", "paused", "stopped"]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the latest run last recorded about itself. Times are ISO 8601 in UTC.

    `since` is the start of the phase and `noted_at` the time of writing. `pause` is the reason for
    a pause in words and `until` its end. `offline_since` is the time when the connection was lost,
    and `problem` the error that ended the run.
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
    """The state of the latest run, for `swarm-node status`. Times are ISO 8601 in UTC.

    `since` is the time when the run entered this state. A run is `killed` if it ended without
    recording its end; `since` is then the time when it last wrote its RunRecord. `pid` is None if
    the run has ended. `why` is the reason for a pause, or the error that ended the run.
    """

    state: Literal["starting", "running", "paused", "stopped", "killed"]
    since: str
    pid: int | None = None
    last_step_at: str | None = None
    why: str = ""
    until: str | None = None
    offline_since: str | None = None


def write_run(state: StateDir, record: RunRecord) -> None:
    """Write the record of a run into its state folder. Raises OSError if that fails."""
    write_record(state.path / FILE, record)


def read_run(state: StateDir) -> RunState | None:
    """Return the state of the latest run in a state folder, None before the first run.

    Raises SettingsError when the record or the folder's lock cannot be read.
    """
    record = read_record(state.path / FILE, RunRecord)
    if record is None:
        return None
    if not state.is_locked():
        # Read again: the run may have ended normally between the two reads.
        record = read_record(state.path / FILE, RunRecord) or record
        if record.phase != "stopped":
            return RunState(state="killed", since=record.noted_at, last_step_at=record.last_step_at)
    return RunState(
        state=record.phase,
        since=record.since,
        pid=record.pid if record.phase != "stopped" else None,
        last_step_at=record.last_step_at,
        why=record.pause or record.problem,
        until=record.until,
        offline_since=record.offline_since,
    )


def find_standstill(run: RunState | None, *, trains: bool, within: timedelta, now: datetime) -> str:
    """Return why a node makes no progress; an empty text if nothing is wrong.

    A run that is None, stopped or killed makes no progress. Nothing is wrong with a paused node, or
    with a running node that does not train (`trains` is False). In all other cases, the node makes
    no progress if its run has been in its present state for longer than `within` and made no step
    in that time. `now` is the current time, with a time zone.
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
    problem = "no step" if run.state == "running" else "still starting"
    return f"{problem} since {latest.astimezone(UTC).isoformat(timespec='seconds')}"
