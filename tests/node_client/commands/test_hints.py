"""Whoever joins for the first time, at a terminal and without settings, hears of `init` once."""

import sys
from pathlib import Path

import pytest

from node_client.cli import suggest_init
from node_client.settings.config import choose
from node_client.site import parse_site
from node_client.storage.state import NodeRecord, StateDir

URL = "https://swarm.example.org"


class Terminal:
    """A standard error that is one."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def is_mentioned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    suggest_init(choose(parse_site(URL), flags={"state_dir": folder}, environment={}))
    return f"swarm-node init {URL}" in terminal.text


def test_the_first_time_it_is_mentioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_mentioned(tmp_path, monkeypatch)


def test_a_node_that_has_joined_needs_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    StateDir(tmp_path).save(NodeRecord(url=URL, token="t", node="heron"))
    assert not is_mentioned(tmp_path, monkeypatch)


def test_whoever_has_settings_needs_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "swarm-node.toml").write_text("plain = true")
    assert not is_mentioned(tmp_path, monkeypatch)


def test_a_script_is_told_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suggest_init(choose(parse_site(URL), flags={"state_dir": tmp_path}, environment={}))
    assert capsys.readouterr().err == ""
