"""How far a model has come: beside the spinner in a terminal, as lines without one."""

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


def lines_of(caplog: pytest.LogCaptureFixture, told: list[LoadingProgress]) -> list[str]:
    console = Console(file=io.StringIO())
    with caplog.at_level(logging.INFO), show_loading("m", console=console) as tell:
        for progress in told:
            tell(progress)
    return [each.getMessage() for each in caplog.records]


def test_without_a_terminal_a_download_is_a_line_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = [LoadingProgress("Downloading", done << 20, 3 << 30, "bytes") for done in (1, 2, 3)]
    assert lines_of(caplog, told) == ["Downloading: 1 MiB of 3.0 GiB"]


def test_without_a_terminal_loading_is_told_only_where_it_takes_long(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [LoadingProgress("Loading", 1, 1290, "tensors")]
    assert lines_of(caplog, told) == []
    monkeypatch.setattr(showing, "LINE_EVERY_S", 0)
    assert lines_of(caplog, told) == ["Loading: 1 of 1,290 tensors"]


def test_a_terminal_shows_the_figures_beside_the_spinner() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system=None, width=100)
    with show_loading("[m]", console=console) as tell:
        tell(LoadingProgress("Downloading", 1 << 20, 3 << 30, "bytes"))
    assert "Loading the model [m]. Downloading: 1 MiB of 3.0 GiB" in screen.getvalue()


def test_transformers_tells_how_many_tensors_it_has_loaded(tmp_path: Path) -> None:
    toy_policy().save(tmp_path)
    told: list[LoadingProgress] = []
    Policy.load(str(tmp_path), device="cpu", on_progress=told.append)
    assert told
    assert {each.unit for each in told} == {"tensors"}
    assert all(0 <= each.done <= each.total for each in told)
