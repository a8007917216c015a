import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.configuration import write_template
from node_client.settings.fields import all_settings
from node_client.settings.sources import read_file
from node_client.storage.state import NodeRecord, StateDir

URL = "https://swarm.example.org"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def show(*arguments: str, environment: dict[str, str] | None = None) -> str:
    result = CliRunner().invoke(app, ["config", "show", *arguments], env=environment or {})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_value_is_shown_with_its_source(tmp_path: Path) -> None:
    StateDir(tmp_path).save(NodeRecord(url=URL, token="t", arm="isolated"))
    Path("swarm-node.toml").write_text("steps = 3")
    arguments = [URL, "--state-dir", str(tmp_path), "--json", "--top-p", "0.5"]
    shown = json.loads(show(*arguments, environment={"SWARM_DEVICE": "cpu"}))
    assert set(shown) == set(all_settings())
    assert shown["top_p"] == {"value": 0.5, "source": "flag", "place": "--top-p"}
    assert shown["device"]["place"] == "SWARM_DEVICE"
    assert shown["steps"] == {"value": 3, "source": "file", "place": "swarm-node.toml"}
    assert shown["arm"] == {"value": "isolated", "source": "remembered", "place": "as last time"}
    assert shown["epsilon"]["source"] == "default"


def test_no_secret_is_shown(tmp_path: Path) -> None:
    environment = {"SWARM_TOKEN": "top-secret"}
    assert "top-secret" not in show(URL, environment=environment)
    assert "top-secret" not in show(URL, "--json", environment=environment)
    assert "not shown" in show(URL, environment=environment)


def test_table_fits_into_80_columns() -> None:
    lines = show("--token-file", "a/very/long/path" * 8, environment={"COLUMNS": "80"}).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("mask_truncated_completions" in line for line in lines)


def test_template_written_by_init_sets_nothing(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["config", "init"]).exit_code == 0
    assert read_file(tmp_path / "swarm-node.toml") == {}


def test_lines_of_the_template_contain_the_defaults() -> None:
    lines = [line[2:] for line in write_template().splitlines() if " = " in line]
    values = tomllib.loads("\n".join(line for line in lines if " =   # " not in line))
    settings = all_settings()
    defaults = {name: settings[name].default for name in values}
    assert values == json.loads(json.dumps(defaults))  # a tuple is a list in TOML
    assert "token" not in values


def test_line_without_a_default_is_toml_after_a_value_is_inserted() -> None:
    [line] = [line for line in write_template().splitlines() if line.startswith("# steps =")]
    assert line == "# steps =   # a whole number of at least 1, or none"
    assert tomllib.loads(line[2:].replace("=  ", "= 3 ")) == {"steps": 3}


def test_init_does_not_overwrite_a_file() -> None:
    Path("swarm-node.toml").write_text("steps = 3")
    result = CliRunner().invoke(app, ["config", "init"])
    assert result.exit_code == 1
    assert Path("swarm-node.toml").read_text() == "steps = 3"
