"""All runs of an experiment are made by workers, which can be stopped and resumed."""

import pickle
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from node_client.cli import app
from node_client.commands.problems import FAILED
from node_client.errors import CoordinatorRefusedError, NodeError, SettingsError
from node_client.lab.config import read_experiment
from node_client.lab.records import read_run
from node_client.lab.running import missing_runs, runs_of
from tests.node_client.lab.experiments import experiment

ROUNDS = 30
SMALL = """
name = "small"
question = "Does it run?"
phase = "exploratory"
nodes = 1
rounds = {rounds}
seeds = [1]
baseline = "4/0"
eval_tasks = 0
base = "{base}"

[season]
completions = 2
max_new_tokens = 8

[[season.tasks]]
dataset = "chain_sum"
config = {{ min_terms = 2, max_terms = 2, min_digits = 1, max_digits = 1 }}
weight = 1.0

[[arms]]
name = "4/0"
train = {{ mix = "4/0", arm = "isolated", learning_rate = {learning_rate} }}

[[arms]]
name = "2/2"
train = {{ mix = "2/2" }}
"""


def write_experiment(folder: Path, *, base: str = "tiny", learning_rate: float = 1e-4) -> Path:
    path = folder / "mine.toml"
    path.write_text(SMALL.format(rounds=ROUNDS, base=base, learning_rate=learning_rate))
    return path


def lab_run(config: Path, out: Path, *, processes: int = 1) -> Result:
    """Run the command; each process takes seconds for its imports."""
    options = ["--out", str(out), "--processes", str(processes)]
    return CliRunner().invoke(app, ["lab", "run", str(config), *options])


def finished(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((out / "runs").glob("*.jsonl"))}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a completed experiment."""
    folder = tmp_path_factory.mktemp("made")
    result = lab_run(write_experiment(folder), folder / "out", processes=2)
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture
def made(made_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made_once, tmp_path / "made")


def written(folder: Path) -> list[tuple[int, int]]:
    """Return the inodes of the runs' files, and when they were written."""
    found = [path.stat() for path in sorted((folder / "runs").glob("*.jsonl"))]
    return [(each.st_ino, each.st_mtime_ns) for each in found]


@pytest.mark.slow
def test_lab_run_makes_every_run_with_every_round(made: Path) -> None:
    assert list(finished(made)) == ["2-2-1.jsonl", "4-0-1.jsonl"]
    for name in finished(made):
        header, rounds = read_run(made / "runs" / name)
        assert (header.nodes, len(rounds)) == (1, ROUNDS + 1)
    planned = read_experiment(made / "experiment.toml")
    assert missing_runs(planned, made) == []


@pytest.mark.slow
def test_finished_runs_are_not_made_again(made: Path) -> None:
    before = written(made)
    result = lab_run(made / "experiment.toml", made)
    assert result.exit_code == 0, result.output
    assert written(made) == before


@pytest.mark.slow
def test_another_design_is_refused_before_anything_is_written(made: Path, tmp_path: Path) -> None:
    files, config = finished(made), (made / "experiment.toml").read_text()
    result = lab_run(write_experiment(tmp_path, learning_rate=1e-3), made)
    assert result.exit_code == FAILED
    assert "was made by another design" in " ".join(result.output.split())
    assert (finished(made), (made / "experiment.toml").read_text()) == (files, config)


@pytest.mark.slow
def test_run_locked_by_another_process_is_not_reported_as_done(made: Path) -> None:
    (made / "runs" / "2-2-1.jsonl").unlink()
    with FileLock(made / "runs" / "2-2-1.lock"):
        result = lab_run(made / "experiment.toml", made)
    assert result.exit_code == FAILED
    assert "Another process is making 2-2-1;" in result.output
    assert list(finished(made)) == ["4-0-1.jsonl"]


@pytest.mark.slow
def test_problem_of_a_worker_is_reported(tmp_path: Path) -> None:
    result = lab_run(write_experiment(tmp_path, base=str(tmp_path / "none")), tmp_path / "out")
    assert (result.exit_code, type(result.exception)) == (FAILED, SystemExit)
    assert f"{tmp_path}/none" in result.output


def rounds_in(path: Path) -> int:
    return len(path.read_bytes().splitlines()) - 2 if path.exists() else 0


@pytest.mark.slow
def test_stopped_experiment_ends_its_workers_and_keeps_a_snapshot(
    made_once: Path, tmp_path: Path
) -> None:
    config, out = made_once / "experiment.toml", tmp_path / "out"
    under_way = out / "runs" / "4-0-1.part"
    command = [sys.executable, "-m", "node_client", "lab", "run", str(config)]
    with subprocess.Popen(
        [*command, "--out", str(out), "--processes", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        while process.poll() is None and rounds_in(under_way) < 2:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        result, _ = process.communicate(timeout=60)
    assert process.returncode == FAILED, result.decode()
    assert b"Stopped. Finished runs are kept" in result
    gone, alive = psutil.wait_procs(started, timeout=20)
    assert (bool(gone), alive) == (True, [])
    assert 0 < rounds_in(under_way) < ROUNDS
    assert list((out / "snapshots" / "4-0-1").glob("round-*"))


def test_runs_are_ordered_by_seed() -> None:
    planned = experiment(seeds=[3, 1])
    runs = runs_of(planned, Path("out"))
    assert [(run.arm.name, run.seed) for run in runs] == [
        ("4/0", 3),
        ("2/2", 3),
        ("4/0", 1),
        ("2/2", 1),
    ]
    assert missing_runs(planned, Path("out")) == runs


@pytest.mark.parametrize(
    "problem",
    [SettingsError("Wrong.", fix="Right it."), CoordinatorRefusedError("No.", fix="Go.", code="c")],
)
def test_problem_of_a_worker_survives_pickling(problem: NodeError) -> None:
    found = pickle.loads(pickle.dumps(problem))
    assert type(found) is type(problem)
    assert (str(found), vars(found)) == (str(problem), vars(problem))
