import asyncio
import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from node_client.cli import COMMANDS, app
from node_client.commands.problems import FAILED, REFUSED
from node_client.runtime import run
from node_client.settings.config import Settings
from node_client.settings.train_config import TrainConfig
from node_client.site import parse_site
from node_client.storage.state import NodeRecord, StateDir, TrainingProgress
from swarm_protocol.messages import ReportTraining
from swarm_protocol.version import CLIENT_VERSION
from tests.node_client.coordinator import TOKEN, Coordinator, running
from tests.node_client.fakes import toy_policy, toy_season

URL = "https://swarm.example.org"


@pytest.fixture
def settings_of_runs(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Collect the settings of each run instead of running."""
    collected: list[Settings] = []

    async def collect(settings: Settings, *, console: Console) -> None:
        collected.append(settings)

    monkeypatch.setattr(run, "run_client", collect)
    return collected


def join(*arguments: str, environment: dict[str, str] | None = None) -> None:
    result = CliRunner().invoke(app, ["join", *arguments], env=environment or {})
    assert result.exit_code == 0, result.output


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys, node_client.cli\n"
        "sys.exit(bool({'torch', 'transformers', 'websockets', 'httpx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_lists_the_commands_in_the_order_of_use() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    words = [line.split()[1] for line in shown.splitlines() if line.startswith("│ ")]
    assert [word for word in words if word in COMMANDS] == list(COMMANDS)


def test_status_works_with_an_encoding_without_check_marks(tmp_path: Path) -> None:
    StateDir(tmp_path).save(NodeRecord(url=URL, token="t", node="hérisson"))
    words = ("-m", "node_client", "status", "--state-dir", str(tmp_path))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    completed = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, check=True
    )
    assert b"h?risson" in completed.stdout


def test_installed_command_starts_the_client() -> None:
    command = Path(sysconfig.get_path("scripts"), "swarm-node")
    completed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert CLIENT_VERSION in completed.stdout


def test_version_is_that_of_the_protocol() -> None:
    assert CLIENT_VERSION in CliRunner().invoke(app, ["--version"]).output


def test_options_of_the_last_run_are_remembered(
    tmp_path: Path, settings_of_runs: list[Settings]
) -> None:
    StateDir(tmp_path).save(NodeRecord(url=URL, token="remembered", model="m", arm="isolated"))
    join(URL, "--state-dir", str(tmp_path), environment={"SWARM_MODEL": "e"})
    [settings] = settings_of_runs
    assert (settings.token, settings.model, settings.arm) == ("remembered", "e", "isolated")


def test_switch_can_be_turned_off_again(tmp_path: Path, settings_of_runs: list[Settings]) -> None:
    arguments = [URL, "--token", "t", "--state-dir", str(tmp_path)]
    join(*arguments, environment={"SWARM_PLAIN": "1"})
    join(*arguments, "--no-plain", environment={"SWARM_PLAIN": "1"})
    assert [settings.plain for settings in settings_of_runs] == [True, False]


def test_unknown_variable_causes_a_warning_and_no_change(
    tmp_path: Path, settings_of_runs: list[Settings]
) -> None:
    arguments = ["join", URL, "--token", "t", "--state-dir", str(tmp_path)]
    result = CliRunner().invoke(app, arguments, env={"SWARM_MODLE": "m"})
    assert "SWARM_MODEL?" in result.stderr
    assert settings_of_runs[0].model == "tiny"


def test_offline_training_is_refused_if_the_environment_sets_arm_base(tmp_path: Path) -> None:
    arguments = ["train", "--offline", "--state-dir", str(tmp_path)]
    result = CliRunner().invoke(app, arguments, env={"SWARM_ARM": "base"})
    assert result.exit_code == FAILED
    assert "SWARM_ARM" in result.output


def test_training_options_reach_the_trainer(
    tmp_path: Path, settings_of_runs: list[Settings]
) -> None:
    join(
        URL, "--token", "t", "--state-dir", str(tmp_path), "--learning-rate", "0.5", "--local", "0"
    )
    assert settings_of_runs[0].training == TrainConfig(learning_rate=0.5, local=0)


def test_repr_of_the_settings_does_not_contain_the_token(
    tmp_path: Path, settings_of_runs: list[Settings]
) -> None:
    join(URL, "--token", "secret-token", "--state-dir", str(tmp_path))
    assert "secret-token" not in repr(settings_of_runs[0])


def test_model_folder_is_remembered_by_its_full_path(
    tmp_path: Path, settings_of_runs: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    join(URL, "--token", "t", "--state-dir", "state", "--model", "model")
    assert settings_of_runs[0].model == str(tmp_path / "model")


@pytest.mark.parametrize(
    ("arguments", "entries"),
    [
        (["logout", URL], "There is no token"),
        (["claim", URL], "--token-file"),
        (["join", "swarm.example.org", "--token", "t"], "https://"),
        (["join", URL, "--token", "t", "--arm", "base", "--steps", "5"], "--steps"),
        (["join", URL, "--token", "t", "--num-generations", "1"], "at least 2"),
        (["train"], "--offline"),
        (["train", "--offline", "--resume"], "no checkpoint"),
        (["train", "--offline", "--resume", "--fresh"], "or neither"),
        (["join", URL, "--token", "t", "--arm", "base", "--fresh"], "does not train"),
        (["train", "--offline", "--arm", "base"], "never trains"),
    ],
)
def test_mistake_is_reported_with_its_remedy(
    tmp_path: Path, arguments: list[str], entries: str
) -> None:
    result = CliRunner().invoke(app, [*arguments, "--state-dir", str(tmp_path)])
    assert result.exit_code == FAILED
    assert entries in result.output


async def test_wrong_token_ends_the_client_before_a_model_is_loaded(tmp_path: Path) -> None:
    async with running(Coordinator()) as coordinator:
        arguments = ["join", coordinator.site.base, "--token", "wrong", "--model", "missing"]
        result = await asyncio.to_thread(
            CliRunner().invoke, app, [*arguments, "--state-dir", str(tmp_path)]
        )
    assert result.exit_code == REFUSED
    assert "auth.invalid: This token is unknown." in result.output
    assert "new one" in result.output
    assert "wrong" not in result.output


async def test_status_shows_local_data_and_those_of_the_coordinator(tmp_path: Path) -> None:
    coordinator = Coordinator()
    body = json.dumps({"node": "heron", "score": 0.25})
    coordinator.pages["/api/v1/nodes/heron"] = (coordinator.pages["/healthz"][0], body)
    async with running(coordinator):
        StateDir(tmp_path).save(NodeRecord(url=coordinator.site.base, token="t", node="heron"))
        arguments = ["status", coordinator.site.base, "--state-dir", str(tmp_path)]
        result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert result.exit_code == 0
    assert "0.250" in result.output


@pytest.fixture
def user_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a user without any state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def joined(node: str, *, url: str = URL, state: StateDir | None = None) -> None:
    """Save a node's record like `join`."""
    state = state or StateDir.default(parse_site(url))
    state.path.mkdir(parents=True, exist_ok=True)
    state.save(NodeRecord(url=url, token="secret-token", model="tiny", arm="swarm", node=node))


def status(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["status", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("user_state")
def test_status_without_an_address_shows_the_joined_node() -> None:
    joined("heron")
    shown = status()
    assert "heron" in shown
    assert URL in shown
    assert "not joined" not in shown


@pytest.mark.usefixtures("user_state")
def test_status_without_an_address_shows_the_nodes_of_all_sites() -> None:
    joined("heron")
    joined("kestrel", url="https://other.example.org")
    entries = [json.loads(line)["here"] for line in status("--json").splitlines()]
    assert [(here["site"], here["node"]) for here in entries] == [
        ("https://other.example.org", "kestrel"),
        (URL, "heron"),
    ]
    shown = status()
    assert "heron" in shown
    assert "kestrel" in shown


@pytest.mark.usefixtures("user_state")
def test_status_of_a_state_folder_shows_the_node_in_it(tmp_path: Path) -> None:
    joined("heron")
    joined("kestrel", state=StateDir(tmp_path / "chosen"))
    shown = status("--state-dir", str(tmp_path / "chosen"))
    assert "kestrel" in shown
    assert "heron" not in shown


@pytest.mark.usefixtures("user_state")
def test_status_before_the_first_join_reports_no_node() -> None:
    assert "not joined yet" in status()


@pytest.mark.usefixtures("user_state")
def test_status_without_an_address_also_shows_offline_training() -> None:
    joined("heron")
    alone = StateDir.default(None)
    alone.path.mkdir(parents=True)
    alone.save_progress(TrainingProgress(40, 0.5, "tiny", "practice", "2026-01-01T12:00:00Z"))
    shown = status()
    assert "heron" in shown
    assert "step 40" in shown


@pytest.mark.usefixtures("user_state")
def test_status_fails_and_names_an_unreadable_state_file() -> None:
    joined("heron")
    damaged = StateDir.default(parse_site(URL)).path / "node.json"
    damaged.write_text("{")
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == FAILED
    assert str(damaged) in result.output


@pytest.mark.slow
async def test_ctrl_c_finishes_the_step_saves_and_exits_with_zero(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    coordinator = Coordinator(season=toy_season())
    async with running(coordinator):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "node_client", "join", coordinator.site.base, "--plain"),
            *("--model", str(tmp_path / "model"), "--state-dir", str(tmp_path / "state")),
            env={"SWARM_TOKEN": TOKEN, "OMP_NUM_THREADS": "1", "PATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        reports = await coordinator.wait_for(ReportTraining, timeout_s=60)
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    progress = StateDir(tmp_path / "state").load_progress()
    assert progress is not None
    assert progress.step >= reports[-1].step
    assert StateDir(tmp_path / "state").load().token == TOKEN
    assert TOKEN not in output.decode()
