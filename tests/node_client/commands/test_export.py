import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.model.policy import Policy
from node_client.storage import checkpoint
from node_client.storage.state import NodeRecord, StateDir, TrainingProgress
from swarm_tasks.verifier import Verifier
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.fakes import make_trainer, toy_season


@pytest.fixture
def state(tmp_path: Path, verifier: Verifier) -> StateDir:
    """Return a state folder with checkpoints of the steps 1 and 2."""
    state = StateDir(tmp_path / "state")
    trainer = make_trainer(verifier)
    for _ in range(2):
        trainer.step()
        checkpoint.save(state.checkpoints, trainer)
    return state


def export(state: StateDir, out: Path, *arguments: str) -> str:
    command = ["export", "--state-dir", str(state.path), "--out", str(out), *arguments]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return result.output


def test_exported_model_is_loaded_like_any_other(state: StateDir, tmp_path: Path) -> None:
    export(state, tmp_path / "mine")
    policy = Policy.load(str(tmp_path / "mine"), device="cpu")
    [[answer]] = policy.generate(["1 + 1?"], completions=1, max_new_tokens=4, temperature=0.0)
    assert (policy.name, len(answer.token_ids) > 0) == ("mine", True)
    assert "| training steps | 2 |" in (tmp_path / "mine" / "README.md").read_text()


def test_earlier_checkpoint_can_be_exported(state: StateDir, tmp_path: Path) -> None:
    assert "step 1 of toy" in export(state, tmp_path / "mine", "--checkpoint", "1")


async def test_card_states_the_judge_score(state: StateDir, tmp_path: Path) -> None:
    coordinator = Coordinator()
    figures = {"node": "heron", "score": 0.25, "interval": [0.2, 0.3], "n": 64, "rounds": 2}
    status = coordinator.pages["/healthz"][0]
    coordinator.pages["/api/v1/nodes/heron"] = (status, json.dumps(figures))
    async with running(coordinator):
        url = coordinator.site.base
        season = toy_season()
        state.save(NodeRecord(url=url, node="heron", arm="swarm", season=season))
        await asyncio.to_thread(export, state, tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "0.250, 95 % interval 0.200 to 0.300, n = 64" in card
    assert f"| season | {season.name} |" in card


def test_card_of_an_earlier_checkpoint_does_not_name_the_present_season(
    state: StateDir, tmp_path: Path
) -> None:
    season = toy_season()
    state.save(NodeRecord(url="http://127.0.0.1:9", node="heron", arm="swarm", season=season))
    state.save_progress(TrainingProgress(2, 0.5, "toy", season.name, "2026-01-01T12:00:00+00:00"))
    export(state, tmp_path / "mine", "--checkpoint", "1")
    assert "| season | unknown |" in (tmp_path / "mine" / "README.md").read_text()


def test_unreachable_coordinator_only_omits_the_score(state: StateDir, tmp_path: Path) -> None:
    state.save(NodeRecord(url="http://127.0.0.1:9", node="heron", arm="swarm"))
    assert "the card has no judge score" in export(state, tmp_path / "mine")
    assert "not known" in (tmp_path / "mine" / "README.md").read_text()


def test_existing_folder_is_not_overwritten(state: StateDir, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    command = ["export", "--state-dir", str(state.path), "--out", str(tmp_path / "mine")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "nothing is overwritten" in result.output
    assert not list((tmp_path / "mine").iterdir())


def test_card_contains_no_path_of_this_machine(state: StateDir, tmp_path: Path) -> None:
    state.save(NodeRecord(model=str(tmp_path / "private" / "model")))
    export(state, tmp_path / "mine")
    assert str(tmp_path) not in (tmp_path / "mine" / "README.md").read_text()
