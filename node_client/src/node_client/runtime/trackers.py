"""Trackers plot a run's metrics: TensorBoard, or wandb and trackio, which share one API.

If a tracker fails, a warning is logged and it receives no more metrics; training continues.
`metrics.jsonl` has all metrics in any case.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from importlib import import_module
from typing import Any, Protocol

from node_client.errors import SettingsError
from node_client.settings.config import Settings

Figures = Mapping[str, float | str]

# What trackers raise for a full disk, a lost network, a value that they do not accept.
TROUBLE = (OSError, RuntimeError, ValueError, TypeError, ImportError)
_WITHOUT_ACCOUNT = ("offline", "disabled", "dryrun")

log = logging.getLogger(__name__)


class TrackerRun(Protocol):
    """An open run of a tracker. Its methods may raise the errors in `TROUBLE`."""

    def log(self, figures: Figures, *, step: int) -> None:
        """Record the figures of one step."""

    def finish(self) -> None:
        """Write what is buffered, and close the run."""


class TrackerSink:
    """Passes figures to a tracker, from `begin` until `close`, or until the tracker fails.

    A failure is logged as a warning and not raised.
    """

    def __init__(self, name: str, open_run: Callable[[int], TrackerRun]) -> None:
        self._name = name
        self._open_run = open_run
        self._run: TrackerRun | None = None

    def begin(self, *, step: int) -> None:
        """Close the tracker's open run, if any, and open one that continues after step `step`."""
        self.close()
        with self._giving_up():
            self._run = self._open_run(step)

    def log(self, figures: Figures, *, step: int) -> None:
        """Record the figures of one step."""
        if self._run is not None:
            with self._giving_up():
                self._run.log(figures, step=step)

    def close(self) -> None:
        """Close the tracker's run."""
        run, self._run = self._run, None
        if run is not None:
            with self._giving_up():
                run.finish()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """If the `with` block fails, log a warning and stop using the tracker."""
        try:
            yield
        except TROUBLE as problem:
            self._run = None
            log.warning("%s receives no more metrics: %s", self._name, problem)


def open_tracker(settings: Settings) -> TrackerSink | None:
    """Return a sink for the tracker that `report_to` names, or None if `report_to` is `none`.

    Raises SettingsError if `report_to` is `wandb` and wandb has no valid account, or is too old to
    check its account without a prompt. WANDB_MODE=offline needs no account.
    """
    match settings.report_to:
        case "none":
            return None
        case "tensorboard":
            return TrackerSink("tensorboard", lambda step: _TensorBoard(settings, step=step))
        case "wandb":
            _check_account()
            return TrackerSink("wandb", lambda step: _open_wandb(settings))
        case "trackio":
            return TrackerSink("trackio", lambda step: _open_trackio(settings))


class _TensorBoard:
    """A `TrackerRun` that writes TensorBoard's event files into the state folder.

    If a resumed run repeats a step, the new figures of the step replace the earlier ones.
    """

    def __init__(self, settings: Settings, *, step: int) -> None:
        module: Any = import_module("torch.utils.tensorboard")
        folder = settings.state.path / "tensorboard"
        self._writer = module.SummaryWriter(str(folder), purge_step=step + 1)

    def log(self, figures: Figures, *, step: int) -> None:
        for name, value in figures.items():
            if not isinstance(value, str):
                self._writer.add_scalar(name, value, step)

    def finish(self) -> None:
        self._writer.close()


class _WandbRun:
    """A `TrackerRun` that calls wandb's API, which trackio has too.

    `trouble` has the tracker's own error types; such errors are raised as RuntimeError. What the
    tracker prints goes to standard error: with --json, standard output is for events only.
    """

    def __init__(
        self,
        tracker: Any,
        options: Mapping[str, Any],
        *,
        trouble: tuple[type[Exception], ...] = (),
    ) -> None:
        self._trouble = trouble
        self._run = self._call(tracker.init, **options)

    def log(self, figures: Figures, *, step: int) -> None:
        self._call(self._run.log, dict(figures), step=step)

    def finish(self) -> None:
        self._call(self._run.finish)

    def _call(self, method: Callable[..., Any], *values: Any, **options: Any) -> Any:
        try:
            with redirect_stdout(sys.stderr):
                return method(*values, **options)
        except self._trouble as problem:
            raise RuntimeError(problem) from problem


def _open_wandb(settings: Settings) -> _WandbRun:
    """Open a run of wandb. With WANDB_MODE=offline, wandb writes local files for `wandb sync`."""
    wandb: Any = import_module("wandb")
    options = {
        **_describe_run(settings),
        "group": settings.state.path.name,
        "dir": str(settings.state.path),
        "settings": wandb.Settings(silent=True, console="off"),
    }
    return _WandbRun(wandb, options, trouble=(wandb.Error,))


def _open_trackio(settings: Settings) -> _WandbRun:
    """Open a run in trackio's local database; `trackio show` plots it."""
    return _WandbRun(import_module("trackio"), {**_describe_run(settings), "embed": False})


def _describe_run(settings: Settings) -> dict[str, Any]:
    """Return the run's project and name, and as `config` its model, arm and training settings."""
    return {
        "project": settings.project,
        "name": settings.run_name,
        "config": {
            **asdict(settings.training),
            "model": settings.model,
            "arm": settings.arm,
        },
    }


def _check_account() -> None:
    """Raise SettingsError if wandb has no valid account, or is too old to check that.

    Without an account, wandb would ask for one during training. Modes of wandb that need no
    account, such as WANDB_MODE=offline, are not checked.
    """
    if os.environ.get("WANDB_MODE") in _WITHOUT_ACCOUNT:
        return
    wandb: Any = import_module("wandb")
    try:
        is_known = wandb.login(prompt=False)
    except wandb.Error as problem:
        raise SettingsError(
            f"Weights & Biases does not accept this machine's account: {problem}",
            fix="Run `wandb login --relogin`, or set WANDB_MODE=offline, or leave out --report-to.",
        ) from problem
    except TypeError as problem:  # an old version, without the argument `prompt`
        raise SettingsError(
            "The installed wandb is too old: it cannot check an account without a prompt.",
            fix="pip install --upgrade 'wandb>=0.30', or leave out --report-to.",
        ) from problem
    if not is_known:
        raise SettingsError(
            "Weights & Biases has no account for this machine.",
            fix="Run `wandb login`, or set WANDB_MODE=offline, or leave out --report-to.",
        )
