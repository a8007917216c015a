import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from node_client.errors import SettingsError
from node_client.runtime.trackers import TrackerSink, open_tracker
from node_client.settings.choices import Tracker
from node_client.settings.config import Settings, check_tracker
from node_client.storage.state import StateDir


def settings(folder: Path, tracker: Tracker) -> Settings:
    return Settings(state=StateDir(folder), report_to=tracker, token="secret", project="p")


def opened(folder: Path, tracker: Tracker) -> TrackerSink:
    sink = open_tracker(settings(folder, tracker))
    assert sink is not None
    return sink


class FakeRun:
    """A run of a tracker that records its options and figures."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.logged: list[tuple[dict[str, Any], int]] = []
        self.finished = False

    def log(self, figures: dict[str, Any], *, step: int) -> None:
        self.logged.append((figures, step))

    def finish(self) -> None:
        self.finished = True


class FakeModule(SimpleNamespace):
    """The parts of wandb or trackio that the client uses; `runs` are the opened ones."""

    Error = type("Error", (Exception,), {})

    def __init__(self) -> None:
        super().__init__(runs=[], account=True)

    def init(self, **options: Any) -> FakeRun:
        run = FakeRun(**options)
        self.runs.append(run)
        return run

    def login(self, *, prompt: bool) -> bool:
        assert not prompt
        return bool(self.account)

    def Settings(self, **options: Any) -> dict[str, Any]:  # wandb's name
        return options


@pytest.fixture(params=["wandb", "trackio"])
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeModule:
    module = FakeModule()
    module.name = request.param
    monkeypatch.setitem(sys.modules, module.name, module)
    return module


def test_tensorboard_shows_the_figures_and_drops_repeated_steps(
    tmp_path: Path,
) -> None:
    sink = opened(tmp_path, "tensorboard")
    sink.begin(step=0)
    for step in (1, 2, 3):
        sink.log({"reward": step / 10, "season": "sums"}, step=step)
    sink.close()
    sink.begin(step=2)
    sink.log({"reward": 0.9}, step=3)
    sink.close()
    drawn = EventAccumulator(str(tmp_path / "tensorboard"))
    drawn.Reload()
    points = [(event.step, round(event.value, 3)) for event in drawn.Scalars("reward")]
    assert points == [(1, 0.1), (2, 0.2), (3, 0.9)]


def test_service_receives_every_figure_with_its_step(service: FakeModule, tmp_path: Path) -> None:
    sink = opened(tmp_path, service.name)
    sink.begin(step=0)
    sink.log({"reward": 0.5, "season": "sums"}, step=1)
    sink.close()
    [run] = service.runs
    assert run.logged == [({"reward": 0.5, "season": "sums"}, 1)]
    assert run.finished
    assert run.options["project"] == "p"
    assert run.options["config"]["num_iterations"] == 1


def test_service_receives_no_secret(service: FakeModule, tmp_path: Path) -> None:
    opened(tmp_path, service.name).begin(step=0)
    assert "secret" not in str(service.runs[0].options)


def test_failing_tracker_causes_one_warning_and_is_not_called_again(
    caplog: pytest.LogCaptureFixture, service: FakeModule, tmp_path: Path
) -> None:
    sink = opened(tmp_path, service.name)
    sink.begin(step=0)
    [run] = service.runs

    def fail(figures: dict[str, Any], *, step: int) -> None:
        raise service.Error("no network") if service.name == "wandb" else OSError("no network")

    run.log = fail
    with caplog.at_level(logging.WARNING, logger="node_client"):
        sink.log({"reward": 0.5}, step=1)
        sink.log({"reward": 0.5}, step=2)
        sink.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"{service.name} receives no more metrics: no network"
    ]


def test_wandb_without_an_account_is_refused_before_training_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = FakeModule()
    module.account = False
    monkeypatch.setitem(sys.modules, "wandb", module)
    with pytest.raises(SettingsError, match="no account"):
        open_tracker(settings(tmp_path, "wandb"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert open_tracker(settings(tmp_path, "wandb")) is not None


def refuse(*, prompt: bool) -> bool:
    raise FakeModule.Error("WANDB_API_KEY invalid")


def outdated_login() -> bool:
    return True


@pytest.mark.parametrize(
    ("login", "message"), [(refuse, "WANDB_API_KEY invalid"), (outdated_login, "too old")]
)
def test_wandb_with_a_failing_or_outdated_login_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, login: Callable[..., bool], message: str
) -> None:
    module = FakeModule()
    monkeypatch.setattr(module, "login", login, raising=False)
    monkeypatch.setitem(sys.modules, "wandb", module)
    with pytest.raises(SettingsError, match=message) as refusal:
        open_tracker(settings(tmp_path, "wandb"))
    assert "leave out --report-to" in refusal.value.fix


def test_missing_tracker_is_reported_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("node_client.settings.config.find_spec", lambda name: None)
    with pytest.raises(SettingsError) as refusal:
        check_tracker("trackio")
    assert refusal.value.fix.startswith("pip install trackio")
    check_tracker("none")
