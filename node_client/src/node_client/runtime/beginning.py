"""Where a run begins: at the newest checkpoint, or anew, beside what is left of the one before."""

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
from node_client.storage.checkpoint import Resumed, newest_first
from node_client.storage.state import StateDir
from swarm_protocol.messages import Arm
from swarm_tasks import process

log = logging.getLogger(__name__)


def check_system(arm: Arm) -> None:
    """Check that this system can do what an arm needs. Raises NodeError."""
    if arm != "base" and not process.SUPPORTED:
        raise NodeError(
            "Training scores answers in a child process that is shut in, and native Windows has "
            "no means for that.",
            fix=USE_WSL,
        )


def read_clock() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def check_start(state: StateDir, start: Start) -> None:
    """Check that there is a checkpoint for a run that is to go on. Raises CheckpointError."""
    if start == "resume" and not newest_first(state.checkpoints):
        raise _nothing_to_resume(state.checkpoints)


def prepare(
    state: StateDir, start: Start, *, clock: Callable[[], datetime] = read_clock
) -> Path | None:
    """Make a locked state folder ready for a run that begins in this way.

    A run that begins anew overwrites nothing: the checkpoints of before are moved into a folder of
    their own, which is returned, and their run's metrics get a name of the same time.
    """
    if start != "fresh" or not newest_first(state.checkpoints):
        return None
    until = _until(state, clock)
    aside = state.path / f"checkpoints-{until}"
    os.rename(state.checkpoints, aside)
    metrics.set_aside(state.metrics, until=until)
    state.progress.unlink(missing_ok=True)
    return aside


def check_disk(state: StateDir, *, checkpoint: int, kept: int) -> None:
    """Check that there is room for a checkpoint, of about so many bytes, before an hour is spent.

    Says in the log when there is room for one, but not for the `kept` ones that are to be kept.
    Raises NodeError.
    """
    free = shutil.disk_usage(state.path).free
    size = f"A checkpoint takes about {checkpoint / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free"
    if free < checkpoint:
        raise NodeError(
            f"{size} in {state.path}.",
            fix="Free some space, or choose a folder on another disk with --state-dir.",
        )
    # One more is written before the oldest goes, and the best one stays besides.
    missing = kept + 2 - len(newest_first(state.checkpoints))
    if free < missing * checkpoint:
        log.warning("%s: not enough for the %d that are kept, and one being written", size, kept)


def set_lost_metrics_aside(state: StateDir, *, clock: Callable[[], datetime] = read_clock) -> None:
    """Keep the metrics of a run whose checkpoints are gone, where another begins at step 1.

    If none was ever saved there is no progress either, and the same run makes its steps again.
    """
    if state.progress.exists():
        metrics.set_aside(state.metrics, until=_until(state, clock))
        state.progress.unlink()


def check_resumed(resumed: Resumed | None, *, start: Start, checkpoints: Path) -> None:
    """Check that a run which was to go on does. Raises CheckpointError when it begins at step 1."""
    if start == "resume" and (resumed is None or resumed.step == 0):
        raise _nothing_to_resume(checkpoints)


def _until(state: StateDir, clock: Callable[[], datetime]) -> str:
    """Return what is added to names of what is set aside now; no other has it."""
    now = f"until-{clock():%Y-%m-%dT%H-%M-%S}"
    numbered = (now if number == 1 else f"{now}-{number}" for number in count(1))
    return next(until for until in numbered if not any(state.path.glob(f"*-{until}*")))


def _nothing_to_resume(checkpoints: Path) -> CheckpointError:
    return CheckpointError(
        f"There is no checkpoint in {checkpoints} that a run could go on from.",
        fix="Leave out --resume to begin at step 1, or name the earlier run's --state-dir.",
    )
