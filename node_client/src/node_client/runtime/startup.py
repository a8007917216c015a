"""Checks before a run, and prepares its state folder.

A run that starts at step 1 does not overwrite the files of an earlier run that saved a checkpoint
or its progress, but renames them.
"""

import logging
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from node_client.errors import USE_WSL, CheckpointError, NodeError
from node_client.settings.choices import Start
from node_client.storage import metrics
from node_client.storage.checkpoint import ResumePoint, newest_first
from node_client.storage.state import StateDir
from swarm_protocol.messages import Arm
from swarm_tasks import process

log = logging.getLogger(__name__)


def check_system(arm: Arm) -> None:
    """Raise NodeError if this system cannot train, unless the arm is `base`, which never trains."""
    if arm != "base" and not process.SUPPORTED:
        raise NodeError(
            "Training scores answers in an isolated child process, which native Windows does not "
            "support.",
            fix=USE_WSL,
        )


def read_clock() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def check_start(state: StateDir, start: Start) -> None:
    """Raise CheckpointError if `start` is `resume` but there is no checkpoint, intact or not."""
    if start == "resume" and not newest_first(state.checkpoints):
        raise _nothing_to_resume(state.checkpoints)


def prepare(
    state: StateDir, start: Start, *, clock: Callable[[], datetime] = read_clock
) -> Path | None:
    """Prepare a locked state folder for a run; return the renamed folder of checkpoints, if any.

    If `start` is `fresh` and there are checkpoints, their folder and the metrics of their run are
    renamed, and the progress file is removed. The new names contain the current time. Raises
    OSError if that fails. In all other cases, nothing changes and None is returned.
    """
    if start != "fresh" or not newest_first(state.checkpoints):
        return None
    until = _unused_suffix(state, clock)
    aside = state.path / f"checkpoints-{until}"
    os.rename(state.checkpoints, aside)
    metrics.set_aside(state.metrics, until=until)
    state.progress.unlink(missing_ok=True)
    return aside


def check_disk(state: StateDir, start: Start, *, checkpoint: int, kept: int) -> None:
    """Check, before training, that the disk has space for a checkpoint of `checkpoint` bytes.

    Raises NodeError if there is too little space. Logs a warning if the space is enough for one
    checkpoint, but not for all that the run will have at once: the newest ones (`kept` is their
    number), the best one, and the one that is being written.
    """
    free = shutil.disk_usage(state.path).free
    size = f"A checkpoint takes about {checkpoint / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free"
    if free < checkpoint:
        raise NodeError(
            f"{size} in {state.path}.",
            fix="Free some space, or choose a folder on another disk with --state-dir.",
        )
    # One more is written before the oldest is removed, and the best one is kept in addition.
    missing = kept + 2
    if start != "fresh":  # a fresh run removes none of the earlier checkpoints
        missing -= len(newest_first(state.checkpoints))
    if free < missing * checkpoint:
        log.warning("%s: not enough for the %d that are kept and the one being written", size, kept)


def set_lost_metrics_aside(state: StateDir, *, clock: Callable[[], datetime] = read_clock) -> None:
    """Rename the metrics of a run whose checkpoints are lost, before a new run starts at step 1.

    Call this only if there is no intact checkpoint. The progress file is written with each
    checkpoint. If it exists, the earlier run had a checkpoint: the metrics are renamed, and the
    progress file is removed. Otherwise nothing is changed, because a run that ended before its
    first checkpoint made only steps that the new run makes again. Raises OSError.
    """
    if state.progress.exists():
        metrics.set_aside(state.metrics, until=_unused_suffix(state, clock))
        state.progress.unlink()


def check_resumed(resumed: ResumePoint | None, *, start: Start, checkpoints: Path) -> None:
    """Raise CheckpointError if `start` is `resume` but no checkpoint was loaded."""
    if start == "resume" and (resumed is None or resumed.step == 0):
        raise _nothing_to_resume(checkpoints)


def _unused_suffix(state: StateDir, clock: Callable[[], datetime]) -> str:
    """Return an unused suffix, with the current time, for files that are set aside."""
    now = f"until-{clock():%Y-%m-%dT%H-%M-%S}"
    numbered = (now if number == 1 else f"{now}-{number}" for number in count(1))
    return next(until for until in numbered if not any(state.path.glob(f"*-{until}*")))


def _nothing_to_resume(checkpoints: Path) -> CheckpointError:
    return CheckpointError(
        f"There is no checkpoint in {checkpoints} to resume from.",
        fix="Leave out --resume to start at step 1, or name the earlier run's --state-dir.",
    )
