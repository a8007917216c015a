"""The metrics of each training step, and the sinks that receive them.

A metric that trl's `GRPOTrainer` logs too has trl's name here, for use with trl's dashboards.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Protocol

from node_client.learning.questions.held_out import HeldOutScore
from node_client.learning.report import StepReport
from node_client.runtime.trackers import open_tracker
from node_client.settings.config import Settings
from node_client.storage.metrics import MetricsFile

# trl's names for fields of StepReport; other fields keep their names.
TRL_NAMES = {
    "training_reward": "reward",
    "completion_length": "completions/mean_length",
    "clipped_ratio": "completions/clipped_ratio",
    "clip_ratio": "clip_ratio/region_mean",
}


class MetricSink(Protocol):
    """A receiver of metrics: the metrics file, or a tracker. Its methods must not raise errors."""

    def begin(self, *, step: int) -> None:
        """Prepare to log the steps after `step`.

        A resumed run may repeat steps that are logged already.
        """

    def log(self, figures: Mapping[str, float | str], *, step: int) -> None:
        """Record the figures of one step."""

    def close(self) -> None:
        """Write what is buffered."""


def open_metrics(settings: Settings) -> list[MetricSink]:
    """Return the sinks that a run's settings ask for; the metrics file is always one of them.

    Raises SettingsError when a tracker cannot be used.
    """
    tracker = open_tracker(settings)
    file = MetricsFile(settings.state.metrics)
    return [file] if tracker is None else [file, tracker]


def figures_of(report: StepReport) -> dict[str, float | str]:
    """Return the numbers and texts of a step's report by name.

    The name is the field's name, or trl's name if TRL_NAMES has one. If the field is a mapping or a
    held-out score, each of its entries is named `field/key`. Other fields, such as lists, are left
    out, and so is `step`, which every sink gets as an argument. Two metrics of trl,
    `frac_reward_zero_std` and `step_time`, are added.
    """
    figures: dict[str, float | str] = {}
    for name in (field.name for field in fields(report) if field.name != "step"):
        value = getattr(report, name)
        name = TRL_NAMES.get(name, name)
        if isinstance(value, HeldOutScore):
            value = asdict(value)
        if isinstance(value, Mapping):
            figures |= {f"{name}/{key}": figure for key, figure in value.items()}
        elif isinstance(value, int | float | str):
            figures[name] = value
    figures["frac_reward_zero_std"] = 1 - report.informative_share
    figures["step_time"] = sum(report.seconds.values())
    return figures
