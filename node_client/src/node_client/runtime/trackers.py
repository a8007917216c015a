"""Trackers draw a run's metrics: TensorBoard, Weights & Biases or trackio, where installed.

Each is somebody else's program with ways of its own to fail. Here they cost a warning and the
figures from then on, never the training; `metrics.jsonl` has them all anyway.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from importlib import import_module
from typing import Any, Protocol

from node_client.errors import SettingsError
from node_client.settings.config import Settings

Figures = Mapping[str, float | str]

# What these programs raise for a full disk, a lost network, a value that they do not take.
TROUBLE = (OSError, RuntimeError, ValueError, TypeError, ImportError)
_WITHOUT_ACCOUNT = ("offline", "disabled", "dryrun")

log = logging.getLogger(__name__)


class Recorder(Protocol):
    """An open run of a tracker. Calls may raise what `TROUBLE` lists."""

    def log(self, figures: Figures, *, step: int) -> None:
        """Take one step's figures."""

    def finish(self) -> None:
        """Hand on what is held back."""


class TrackerSink:
    """Hands figures to a tracker, from when training begins until something there fails."""

    def __init__(self, name: str, open_run: Callable[[int], Recorder]) -> None:
        self._name = name
        self._open_run = open_run
        self._recorder: Recorder | None = None

    def begin(self, *, step: int) -> None:
        """Open a run that goes on after this step."""
        self.close()
        try:
            self._recorder = self._open_run(step)
        except TROUBLE as problem:
            self._give_up(problem)

    def log(self, figures: Figures, *, step: int) -> None:
        """Hand over one step's figures."""
        if self._recorder is None:
            return
        try:
            self._recorder.log(figures, step=step)
        except TROUBLE as problem:
            self._give_up(problem)

    def close(self) -> None:
        """Let the tracker finish."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        try:
            recorder.finish()
        except TROUBLE as problem:
            self._give_up(problem)

    def _give_up(self, problem: Exception) -> None:
        self._recorder = None
        log.warning("%s gets no more metrics: %s", self._name, problem)


def open_tracker(settings: Settings) -> TrackerSink | None:
    """Return the tracker that the settings name. Raises SettingsError when it cannot be used."""
    match settings.report_to:
        case "none":
            return None
        case "tensorboard":
            return TrackerSink("tensorboard", lambda step: _TensorBoard(settings, step=step))
        case "wandb":
            _check_account()
            return TrackerSink("wandb", lambda step: _Wandb(settings))
        case "trackio":
            return TrackerSink("trackio", lambda step: _Trackio(settings))


class _TensorBoard:
    """Event files in the state folder; steps that a resumed run makes again replace the old."""

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


class _Wandb:
    """A run at Weights & Biases, or files for `wandb sync` with WANDB_MODE=offline."""

    def __init__(self, settings: Settings) -> None:
        wandb: Any = import_module("wandb")
        self._trouble: type[Exception] = wandb.Error
        try:
            self._run = wandb.init(
                project=settings.project,
                name=settings.run_name,
                group=settings.state.path.name,
                dir=str(settings.state.path),
                config=describe_settings(settings),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except self._trouble as problem:
            raise RuntimeError(problem) from problem

    def log(self, figures: Figures, *, step: int) -> None:
        try:
            self._run.log(dict(figures), step=step)
        except self._trouble as problem:
            raise RuntimeError(problem) from problem

    def finish(self) -> None:
        self._run.finish()


class _Trackio:
    """A run in trackio's local database; `trackio show` draws it."""

    def __init__(self, settings: Settings) -> None:
        trackio: Any = import_module("trackio")
        with redirect_stdout(sys.stderr):  # it talks, and --json promises that nobody else does
            self._run = trackio.init(
                project=settings.project,
                name=settings.run_name,
                config=describe_settings(settings),
                embed=False,
            )

    def log(self, figures: Figures, *, step: int) -> None:
        self._run.log(dict(figures), step=step)

    def finish(self) -> None:
        with redirect_stdout(sys.stderr):
            self._run.finish()


def describe_settings(settings: Settings) -> dict[str, Any]:
    """Return what a tracker shows beside the curves: the settings, nothing secret."""
    return {**asdict(settings.training), "model": settings.model, "arm": settings.arm}


def _check_account() -> None:
    """Find out before training begins what Weights & Biases would ask in the middle of it."""
    if os.environ.get("WANDB_MODE") in _WITHOUT_ACCOUNT:
        return
    wandb: Any = import_module("wandb")
    try:
        is_known = wandb.login(prompt=False)
    except wandb.Error as problem:
        raise SettingsError(
            f"Weights & Biases does not take this machine's account: {problem}",
            fix="Run `wandb login --relogin`, or set WANDB_MODE=offline, or leave out --report-to.",
        ) from problem
    except TypeError as problem:  # which says that it knows no `prompt`
        raise SettingsError(
            "The wandb that is installed is too old to be asked without a prompt.",
            fix="pip install --upgrade 'wandb>=0.30', or leave out --report-to.",
        ) from problem
    if not is_known:
        raise SettingsError(
            "Weights & Biases knows no account on this machine.",
            fix="Run `wandb login`, or set WANDB_MODE=offline, or leave out --report-to.",
        )
