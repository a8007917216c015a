"""`init` is mentioned only on a first join, at a terminal and without settings."""

import sys
from pathlib import Path

import pytest

from node_client.cli import suggest_init
from node_client.settings.config import choose
from node_client.site import parse_site
from node_client.storage.state import NodeRecord, StateDir

URL = "https://swarm.example.org"


class Terminal:
    """A standard error that is a terminal."""

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


def test_init_is_mentioned_on_the_first_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_mentioned(tmp_path, monkeypatch)


def test_init_is_not_mentioned_to_a_node_that_has_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    StateDir(tmp_path).save(NodeRecord(url=URL, token="t", node="heron"))
    assert not is_mentioned(tmp_path, monkeypatch)


def test_init_is_not_mentioned_if_settings_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "swarm-node.toml").write_text("plain = true")
    assert not is_mentioned(tmp_path, monkeypatch)


def test_init_is_not_mentioned_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suggest_init(choose(parse_site(URL), flags={"state_dir": tmp_path}, environment={}))
    assert capsys.readouterr().err == ""
