import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from node_client.errors import CheckpointError
from node_client.runtime.startup import (
    check_disk,
    check_resumed,
    check_start,
    prepare,
    set_lost_metrics_aside,
)
from node_client.settings.choices import Start
from node_client.storage.checkpoint import ResumePoint
from node_client.storage.metrics import MetricsFile
from node_client.storage.state import StateDir, TrainingProgress


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """Return a state folder with a checkpoint."""
    state = StateDir(tmp_path)
    (state.checkpoints / "step-00000012").mkdir(parents=True)
    state.save_progress(
        TrainingProgress(12, training_reward=0.5, model="m", season="s", saved_at="now")
    )
    return state


def noon() -> datetime:
    return datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_fresh_run_moves_the_earlier_checkpoints_aside(state: StateDir) -> None:
    aside = prepare(state, "fresh", clock=noon)
    assert aside == state.path / "checkpoints-until-2026-11-21T12-00-00"
    assert (aside / "step-00000012").is_dir()
    assert not state.checkpoints.exists()
    assert state.load_progress() is None


def test_two_fresh_runs_at_the_same_time_keep_both_sets_of_checkpoints(state: StateDir) -> None:
    first = prepare(state, "fresh", clock=noon)
    (state.checkpoints / "step-00000001").mkdir(parents=True)
    assert prepare(state, "fresh", clock=noon) not in (first, None)


def test_resumed_run_after_a_fresh_start_keeps_metrics_of_the_earlier_run(
    state: StateDir,
) -> None:
    full = state.metrics.with_name("metrics.1.jsonl")
    full.write_text('{"step": 1}\n{"step": 2}\n')
    state.metrics.write_text('{"step": 3}\n')
    prepare(state, "fresh", clock=noon)
    MetricsFile(state.metrics).log({}, step=1)
    MetricsFile(state.metrics).begin(step=1)
    aside = state.path / "metrics-until-2026-11-21T12-00-00.jsonl"
    assert aside.read_text() == '{"step": 3}\n'
    assert aside.with_suffix(".1.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'


def test_metrics_of_a_run_without_checkpoints_are_moved_aside_once(state: StateDir) -> None:
    for step in (12, 1):
        MetricsFile(state.metrics).log({}, step=step)
        set_lost_metrics_aside(state, clock=noon)
    [aside] = state.path.glob("metrics-until-*")
    assert '"step":12' in aside.read_text()
    assert '"step":1,' in state.metrics.read_text()


@pytest.mark.parametrize(("start", "warnings"), [("auto", 0), ("fresh", 1)])
def test_fresh_run_needs_space_besides_the_earlier_checkpoints(
    state: StateDir, caplog: pytest.LogCaptureFixture, start: Start, warnings: int
) -> None:
    # Enough for three checkpoints: with one that exists, for all that a resumed run keeps.
    size = int(shutil.disk_usage(state.path).free / 3.5)
    check_disk(state, start, checkpoint=size, kept=2)
    assert caplog.text.count("not enough for the 2 that are kept") == warnings


@pytest.mark.parametrize("start", ["auto", "resume"])
def test_resumed_run_leaves_the_checkpoints_in_place(state: StateDir, start: Start) -> None:
    assert prepare(state, start) is None
    assert (state.checkpoints / "step-00000012").is_dir()


def test_fresh_start_in_an_empty_folder_moves_nothing_aside(tmp_path: Path) -> None:
    assert prepare(StateDir(tmp_path), "fresh") is None


def test_resume_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint"):
        check_start(StateDir(tmp_path), "resume")


def test_resume_is_refused_if_all_checkpoints_are_damaged(tmp_path: Path) -> None:
    damaged = ResumePoint(step=0, problems=["one is damaged"])
    with pytest.raises(CheckpointError):
        check_resumed(damaged, start="resume", checkpoints=tmp_path)
    check_resumed(damaged, start="auto", checkpoints=tmp_path)
