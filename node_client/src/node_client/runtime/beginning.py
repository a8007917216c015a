"""Where a run begins: at the newest checkpoint, or anew, beside the checkpoints of before."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from node_client.errors import USE_WSL, CheckpointError, NodeError
from node_client.settings.choices import Start
from node_client.storage.checkpoint import Resumed, newest_first
from node_client.storage.state import StateDir
from swarm_protocol.messages import Arm
from swarm_tasks import process


def check_system(arm: Arm) -> None:
    """Check that this system can do what an arm needs. Raises NodeError."""
    if arm != "base" and not process.SUPPORTED:
        raise NodeError(
            "Training scores answers in a child process that is shut in, and native Windows has "
            "no means for that.",
            fix=USE_WSL,
        )


def prepare(
    state: StateDir, start: Start, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Path | None:
    """Make a locked state folder ready for a run that begins in this way.

    A run that begins anew overwrites nothing: the checkpoints of before are moved into a folder of
    their own, which is returned. Raises CheckpointError when a run is to go on and there is none.
    """
    there = newest_first(state.checkpoints)
    if start == "resume" and not there:
        raise _nothing_to_resume(state.checkpoints)
    if start != "fresh" or not there:
        return None
    aside = _unused(state.path / f"checkpoints-until-{clock():%Y-%m-%dT%H-%M-%S}")
    os.rename(state.checkpoints, aside)
    state.progress.unlink(missing_ok=True)
    return aside


def check_resumed(resumed: Resumed | None, *, start: Start, checkpoints: Path) -> None:
    """Check that a run which was to go on does. Raises CheckpointError when it begins at step 1."""
    if start == "resume" and (resumed is None or resumed.step == 0):
        raise _nothing_to_resume(checkpoints)


def _unused(path: Path) -> Path:
    number = 1
    chosen = path
    while chosen.exists():
        number += 1
        chosen = path.with_name(f"{path.name}-{number}")
    return chosen


def _nothing_to_resume(checkpoints: Path) -> CheckpointError:
    return CheckpointError(
        f"There is no checkpoint in {checkpoints} that a run could go on from.",
        fix="Leave out --resume to begin at step 1, or name the earlier run's --state-dir.",
    )
