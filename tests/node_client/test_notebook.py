"""The notebook for joining from a hosted GPU is valid, and the client accepts its commands."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from node_client.cli import app
from node_client.site import parse_site

PATH = Path(__file__).parents[2] / "docs" / "notebooks" / "join.ipynb"
NOTEBOOK: dict[str, Any] = json.loads(PATH.read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
COMMANDS = [text for text in CODE if text.startswith("!swarm-node ")]


def test_notebook_conforms_to_nbformat_4() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in NOTEBOOK["cells"]:
        assert {"cell_type", "id", "metadata", "source"} <= set(cell)
        is_code = cell["cell_type"] == "code"
        assert is_code == ({"execution_count", "outputs"} <= set(cell))


def test_notebook_is_saved_without_outputs() -> None:
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_notebook_runs_doctor_join_and_status() -> None:
    assert [text.split()[1] for text in COMMANDS] == ["doctor", "join", "status"]


def test_other_cells_run_and_name_a_coordinator() -> None:
    values: dict[str, str] = {}
    [settings] = [text for text in CODE if "=" in text and not text.startswith(("%", "!"))]
    exec(settings, values)
    assert parse_site(values["SITE"]).encrypted
    [install] = [text for text in CODE if text.startswith("%pip")]
    assert "swarm-node" in install
    assert "{SITE}/simple/" in install


@pytest.mark.parametrize("text", COMMANDS)
def test_each_command_is_accepted_by_the_client(text: str) -> None:
    filled = text.format(SITE="https://swarm.example.org", MODEL="tiny", STATE="state")
    _, *words = shlex.split(filled)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    with group.make_context("swarm-node", [words[0]], resilient_parsing=True) as context:
        _, command, _ = group.resolve_command(context, words)
        assert command is not None
        with command.make_context(words[0], words[1:], parent=context) as parsed:
            assert parsed.params["state_dir"] == "state"
