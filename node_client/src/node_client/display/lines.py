"""Lines of text about a run, for the log and the end of a run."""

from pathlib import Path

from node_client.display.terminal import fold_line
from node_client.display.view import NodeView
from node_client.storage.pauses import Pause


def describe_step(view: NodeView) -> str:
    """Return one line about the node's latest training step."""
    report = view.report
    if view.arm == "base":
        return "arm base: nothing was trained"
    if report is None:
        return "no step finished yet"
    return (
        f"step {report.step} · training reward {report.training_reward:.3f}"
        f" · informative {report.informative_share:.0%}"
        f" · {report.local_used} local + {report.external_used} external"
        f" · {sum(report.seconds.values()):.1f} s"
    )


def describe_ending(view: NodeView, *, folder: Path) -> str:
    """Return one line that says whether a finished run has saved all its steps in `folder`."""
    if view.report is None or (view.saved is not None and view.saved.step == view.report.step):
        return f"All steps are saved in {folder}"
    safe = view.resumed_step if view.saved is None else view.saved.step
    if not safe:
        return f"NO step is saved: there is no checkpoint in {folder}"
    return f"NOT all steps are saved: the newest checkpoint in {folder} is of step {safe}"


def describe_pause(pause: Pause) -> str:
    """Return a pause as text, in local time: `paused until 2026-01-31 07:00: it is outside …`."""
    until = "" if pause.until is None else f" until {pause.until.astimezone():%Y-%m-%d %H:%M}"
    return f"paused{until}: {pause.why}"


def describe_upgrade(oldest: str, *, command: str) -> str:
    """Return a warning that this client will be refused soon.

    `oldest` is the oldest version that will still be accepted; it comes from the coordinator and
    may be any text. `command` upgrades the client.
    """
    return f"clients older than {fold_line(oldest, limit=20)} will be refused soon; run: {command}"
