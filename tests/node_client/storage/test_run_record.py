"""The state of a client's run, from its record and from whether a process locks its folder."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from node_client.storage.run_record import (
    Phase,
    RunRecord,
    RunState,
    find_standstill,
    read_run,
    write_run,
)
from node_client.storage.state import StateDir

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
AT = NOON.isoformat()
RECORD = RunRecord(pid=7, started_at=AT, phase="running", since=AT, noted_at=AT, last_step_at=AT)
TEN = timedelta(minutes=10)


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def test_no_run_is_found_before_the_first(state: StateDir) -> None:
    assert read_run(state) is None


@pytest.mark.parametrize("phase", ["starting", "running", "paused"])
def test_run_that_locks_the_folder_has_the_recorded_state(state: StateDir, phase: Phase) -> None:
    with state.lock():
        write_run(state, replace(RECORD, phase=phase))
        run = read_run(state)
    assert run is not None
    assert (run.state, run.pid, run.since) == (phase, 7, AT)


@pytest.mark.parametrize("phase", ["starting", "running", "paused"])
def test_run_that_ended_without_a_final_record_was_killed(state: StateDir, phase: Phase) -> None:
    with state.lock():
        write_run(state, replace(RECORD, phase=phase))
    run = read_run(state)
    assert run is not None
    assert (run.state, run.pid) == ("killed", None)


def test_stopped_run_has_its_reason(state: StateDir) -> None:
    with state.lock():
        write_run(state, replace(RECORD, phase="stopped", problem="The token is unknown."))
    run = read_run(state)
    assert run is not None
    assert (run.state, run.why) == ("stopped", "The token is unknown.")


def test_reading_the_state_does_not_prevent_a_client_from_starting(state: StateDir) -> None:
    with state.lock():
        write_run(state, RECORD)
    assert not state.is_locked()
    with state.lock():
        assert state.is_locked()


RUNNING = RunState(state="running", since=AT, last_step_at=AT)


@pytest.mark.parametrize(
    ("run", "trains", "minutes", "healthy"),
    [
        (RUNNING, True, 9, True),
        (RUNNING, True, 11, False),
        (RUNNING, False, 11, True),
        (replace(RUNNING, last_step_at=None), True, 9, True),
        (replace(RUNNING, state="starting", last_step_at=None), True, 11, False),
        (replace(RUNNING, state="paused"), True, 600, True),
        (replace(RUNNING, state="stopped"), True, 0, False),
        (replace(RUNNING, state="killed"), False, 0, False),
        (None, True, 0, False),
    ],
)
def test_node_is_healthy_while_it_makes_progress(
    run: RunState | None, trains: bool, minutes: int, healthy: bool
) -> None:
    now = NOON + timedelta(minutes=minutes)
    assert (find_standstill(run, trains=trains, within=TEN, now=now) == "") == healthy
