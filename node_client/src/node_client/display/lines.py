"""What a log says in one line. Pure."""

from pathlib import Path

from node_client.display.terminal import fold_line
from node_client.display.view import View
from node_client.storage.pauses import Pause


def describe_step(view: View) -> str:
    """Say in one line what the latest step did."""
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


def describe_ending(view: View, *, folder: Path) -> str:
    """Say in one line whether a run that ended has saved all its steps in its state folder."""
    if view.report is None or (view.saved is not None and view.saved.step == view.report.step):
        return f"All is saved in {folder}"
    safe = view.resumed_step if view.saved is None else view.saved.step
    if not safe:
        return f"NO step is saved: there is no checkpoint in {folder}"
    return f"NOT all is saved: the newest checkpoint in {folder} is of step {safe}"


def describe_pause(pause: Pause) -> str:
    """Say in one line why a node pauses and until when, by the machine's clock."""
    until = "" if pause.until is None else f" until {pause.until.astimezone():%Y-%m-%d %H:%M}"
    return f"paused{until}: {pause.why}"


def describe_upgrade(oldest: str, *, command: str) -> str:
    """Say in one line that this client will be refused soon; `oldest` is the first that will not.

    The version is the coordinator's word, so it cannot be trusted to be one. `command` upgrades.
    """
    return f"clients older than {fold_line(oldest, most=20)} will be refused soon; run: {command}"
