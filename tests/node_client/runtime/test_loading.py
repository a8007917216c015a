"""The progress of loading a model: beside the spinner in a terminal, as lines elsewhere."""

import io
import logging
from pathlib import Path

import pytest
from rich.console import Console

from node_client.model.loading.progress import LoadingProgress
from node_client.model.policy import Policy
from node_client.runtime import showing
from node_client.runtime.showing import show_loading
from tests.node_client.fakes import toy_policy


def lines_of(caplog: pytest.LogCaptureFixture, updates: list[LoadingProgress]) -> list[str]:
    console = Console(file=io.StringIO())
    with caplog.at_level(logging.INFO), show_loading("m", console=console) as show:
        for progress in updates:
            show(progress)
    return [each.getMessage() for each in caplog.records]


def test_download_without_a_terminal_prints_occasional_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    updates = [LoadingProgress("Downloading", done << 20, 3 << 30, "bytes") for done in (1, 2, 3)]
    assert lines_of(caplog, updates) == ["Downloading: 1 MiB of 3.0 GiB"]


def test_loading_without_a_terminal_prints_lines_only_if_it_takes_long(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates = [LoadingProgress("Loading", 1, 1290, "tensors")]
    assert lines_of(caplog, updates) == []
    monkeypatch.setattr(showing, "LINE_EVERY_S", 0)
    assert lines_of(caplog, updates) == ["Loading: 1 of 1,290 tensors"]


def test_terminal_shows_the_progress_beside_the_spinner() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system=None, width=100)
    with show_loading("[m]", console=console) as show:
        show(LoadingProgress("Downloading", 1 << 20, 3 << 30, "bytes"))
    assert "Loading the model [m]. Downloading: 1 MiB of 3.0 GiB" in screen.getvalue()


def test_transformers_reports_how_many_tensors_it_has_loaded(tmp_path: Path) -> None:
    toy_policy().save(tmp_path)
    updates: list[LoadingProgress] = []
    Policy.load(str(tmp_path), device="cpu", on_progress=updates.append)
    assert updates
    assert {each.unit for each in updates} == {"tensors"}
    assert all(0 <= each.done <= each.total for each in updates)
