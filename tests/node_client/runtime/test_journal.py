"""What a client records about its run while it is running."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from node_client.display import events
from node_client.errors import NodeError
from node_client.runtime.journal import Journal
from node_client.storage.run_record import RunState, read_run
from node_client.storage.state import StateDir
from tests.node_client.panel_views import report

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
STARTED = events.Started(
    client="1", site=None, model="toy", parameters=1, device="cpu", arm="swarm", state_dir="s"
)
STEP = events.StepDone.of(
    report(reward=0.25),
    seconds=1.0,
    tokens_per_second=1.0,
    held_out=None,
    memory=None,
    accelerator_memory=None,
)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_s(self, seconds: float) -> str:
        self.now += timedelta(seconds=seconds)
        return self.now.isoformat()


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def read(state: StateDir) -> RunState:
    run = read_run(state)
    assert run is not None
    return run


def test_run_is_recorded_from_its_start_to_its_end(state: StateDir) -> None:
    clock = Clock()
    journal = Journal(state, clock=clock)
    with state.lock(), journal.recording():
        assert read(state).state == "starting"
        started = clock.pass_s(5)
        journal.on_event(STARTED)
        assert (read(state).state, read(state).since) == ("running", started)
        ended = clock.pass_s(60)
    assert (read(state).state, read(state).since, read(state).why) == ("stopped", ended, "")


def test_failed_run_is_recorded_with_the_reason(state: StateDir) -> None:
    with pytest.raises(NodeError), state.lock(), Journal(state).recording():
        raise NodeError("The disk is gone.", fix="Find it.")
    assert (read(state).state, read(state).why) == ("stopped", "The disk is gone.")


def test_latest_step_is_recorded_every_ten_seconds(state: StateDir) -> None:
    clock = Clock()
    journal = Journal(state, clock=clock)
    with state.lock(), journal.recording():
        journal.on_event(STARTED)
        clock.pass_s(3)
        journal.on_event(STEP)
        assert read(state).last_step_at is None
        step_at = clock.pass_s(8)
        journal.on_event(STEP)
        assert read(state).last_step_at == step_at


def test_pause_is_recorded_with_its_reason_and_end(state: StateDir) -> None:
    journal = Journal(state)
    until = NOON.isoformat()
    with state.lock(), journal.recording():
        journal.on_event(STARTED)
        journal.on_event(events.Paused(reason="hours", message="", until=until))
        run = read(state)
        assert (run.state, run.why, run.until) == ("paused", "it is outside its hours", until)
        journal.on_event(events.Resumed())
        assert (read(state).state, read(state).until) == ("running", None)


def test_time_without_a_coordinator_is_recorded(state: StateDir) -> None:
    clock = Clock()
    journal = Journal(state, clock=clock)
    with state.lock(), journal.recording():
        journal.on_event(STARTED)
        journal.on_event(events.LinkChanged(phase="connected", reason=""))
        assert read(state).offline_since is None
        lost = clock.pass_s(60)
        journal.on_event(events.LinkChanged(phase="waiting", reason="gone"))
        clock.pass_s(60)
        journal.on_event(events.LinkChanged(phase="connecting", reason=""))
        assert read(state).offline_since == lost
        journal.on_event(events.LinkChanged(phase="connected", reason=""))
        assert read(state).offline_since is None


def test_unwritable_record_does_not_end_the_run(
    state: StateDir, caplog: pytest.LogCaptureFixture
) -> None:
    with state.lock():
        (state.path / "run.json").mkdir()
        with Journal(state).recording():
            pass
    assert caplog.text.count("`swarm-node status` cannot show this run") == 1


def test_each_loss_of_the_record_is_logged(
    state: StateDir, caplog: pytest.LogCaptureFixture
) -> None:
    record = state.path / "run.json"
    journal = Journal(state)
    with state.lock():
        record.mkdir()
        with journal.recording():
            journal.on_event(STARTED)
            record.rmdir()
            journal.on_event(STARTED)
            record.unlink()
            record.mkdir()
    assert caplog.text.count("`swarm-node status` cannot show this run") == 2
