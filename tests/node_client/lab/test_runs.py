"""A run resumes from its latest sound snapshot, with the same bytes as an uninterrupted run."""

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from node_client.lab.caching import CachingVerifier
from node_client.lab.config import Experiment
from node_client.lab.records import UnreadableRunError, read_run
from node_client.lab.runs import Run, header_of, is_done, make_run
from tests.node_client.forked import run_forked
from tests.node_client.lab.experiments import experiment

MODULE = "tests.node_client.lab.run_process"
STOPPED_AT, ROUNDS = 3, experiment().rounds


@pytest.fixture(scope="module")
def remembering() -> Iterator[CachingVerifier]:
    with CachingVerifier() as verifier:
        yield verifier


def run_in(folder: Path, planned: Experiment | None = None) -> Run:
    return Run(folder, (planned or experiment()).arms[-1], 1)


def made(
    folder: Path,
    verifier: CachingVerifier,
    *,
    planned: Experiment | None = None,
    until: int = ROUNDS,
) -> list[int]:
    """Make a run up to a round, or the rest of it; return the rounds that were played."""
    played: list[int] = []

    def should_continue(rounds_done: int) -> bool:
        played.append(rounds_done)
        return rounds_done < until

    planned = planned or experiment()
    make_run(planned, run_in(folder, planned), verifier=verifier, should_continue=should_continue)
    return played


@pytest.fixture(scope="module")
def complete_file(tmp_path_factory: pytest.TempPathFactory, remembering: CachingVerifier) -> bytes:
    """Return the file of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    made(folder, remembering)
    return run_in(folder).complete_file.read_bytes()


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory: pytest.TempPathFactory, remembering: CachingVerifier) -> Path:
    folder = tmp_path_factory.mktemp("stopped")
    made(folder, remembering, until=STOPPED_AT)
    return folder


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """Return a folder with a run that was stopped after a round, with a snapshot."""
    return shutil.copytree(stopped_once, tmp_path / "stopped")


@pytest.mark.slow
def test_finished_run_contains_its_header_its_base_and_every_round(
    complete_file: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(complete_file)
    header, rounds = read_run(path)
    assert header == header_of(experiment(), run_in(tmp_path))
    assert [record.round for record in rounds] == list(range(ROUNDS + 1))
    assert [record.round for record in rounds if record.held_out] == [0, 2, 4]
    assert {len(record.reward) for record in rounds[1:]} == {2}


@pytest.mark.slow
def test_stopped_run_resumes_with_the_next_round(
    stopped: Path, complete_file: bytes, remembering: CachingVerifier
) -> None:
    assert made(stopped, remembering) == [4, 5]
    run = run_in(stopped)
    assert run.complete_file.read_bytes() == complete_file
    assert not run.partial_file.exists()
    assert not run.snapshot_folder.exists()
    assert made(stopped, remembering) == []


def keep_lines(run: Run, count: int) -> None:
    lines = run.partial_file.read_bytes().splitlines(keepends=True)
    run.partial_file.write_bytes(b"".join(lines[:count]))


def tear(run: Run, name: str) -> None:
    """Truncate each file of this name in the snapshot by one byte."""
    for path in run.snapshot_folder.rglob(name):
        path.write_bytes(path.read_bytes()[:-1])


def break_encoding(run: Run) -> None:
    """Replace a letter in the pool of the snapshot by a byte that is not UTF-8."""
    for path in run.snapshot_folder.rglob("pool.json"):
        path.write_bytes(path.read_bytes().replace(b"node-", b"n\xffde-", 1))


DAMAGES: dict[str, Callable[[Run], object]] = {
    "no lines": lambda run: run.partial_file.unlink(),
    "empty file": lambda run: keep_lines(run, 0),
    "a line less than the snapshot": lambda run: keep_lines(run, STOPPED_AT + 1),
    "torn line": lambda run: run.partial_file.write_bytes(run.partial_file.read_bytes()[:-1]),
    "no snapshot": lambda run: shutil.rmtree(run.snapshot_folder),
    "torn pool": lambda run: tear(run, "pool.json"),
    "pool that is not UTF-8": break_encoding,
    "torn weights": lambda run: tear(run, "model.safetensors"),
    "a node is missing": lambda run: shutil.rmtree(
        run.snapshot_folder / "round-000003" / "node-00"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_run_with_an_unusable_snapshot_starts_again(
    stopped: Path, complete_file: bytes, remembering: CachingVerifier, damage: str
) -> None:
    DAMAGES[damage](run_in(stopped))
    assert made(stopped, remembering) == [1, 2, 3, 4, 5]
    assert run_in(stopped).complete_file.read_bytes() == complete_file


@pytest.mark.slow
def test_lines_after_the_snapshot_are_written_again(
    stopped: Path, complete_file: bytes, remembering: CachingVerifier
) -> None:
    with run_in(stopped).partial_file.open("ab") as file:
        file.write(complete_file.splitlines(keepends=True)[STOPPED_AT + 2] + b'{"kind":"rou')
    assert made(stopped, remembering) == [4, 5]
    assert run_in(stopped).complete_file.read_bytes() == complete_file


@pytest.mark.slow
def test_older_snapshot_replaces_a_damaged_one(
    stopped: Path, complete_file: bytes, remembering: CachingVerifier
) -> None:
    run = run_in(stopped)
    newest = run.snapshot_folder / "round-000004"
    shutil.copytree(run.snapshot_folder / "round-000003", newest)
    (newest / "pool.json").unlink()
    assert made(stopped, remembering) == [4, 5]
    assert run.complete_file.read_bytes() == complete_file


@pytest.mark.slow
def test_run_of_another_design_starts_again_and_is_not_mixed(
    stopped: Path, remembering: CachingVerifier, tmp_path: Path
) -> None:
    other = experiment(train={"learning_rate": 1e-3})
    assert made(stopped, remembering, planned=other) == [1, 2, 3, 4, 5]
    made(tmp_path / "alone", remembering, planned=other)
    alone = run_in(tmp_path / "alone", other).complete_file.read_bytes()
    assert run_in(stopped, other).complete_file.read_bytes() == alone


@pytest.mark.slow
def test_finished_run_of_another_design_is_refused_and_not_changed(
    complete_file: bytes, remembering: CachingVerifier, tmp_path: Path
) -> None:
    run = run_in(tmp_path)
    run.complete_file.parent.mkdir()
    run.complete_file.write_bytes(complete_file)
    assert is_done(experiment(), run)
    with pytest.raises(UnreadableRunError, match=r"2-2-1\.jsonl was made by another design"):
        made(tmp_path, remembering, planned=experiment(train={"learning_rate": 1e-3}))
    assert run.complete_file.read_bytes() == complete_file


@pytest.mark.slow
def test_second_process_for_the_same_run_writes_nothing(
    tmp_path: Path, complete_file: bytes, remembering: CachingVerifier
) -> None:
    run, files = run_in(tmp_path), []

    def should_continue(rounds_done: int) -> bool:
        if rounds_done == 2:
            files.append(run.partial_file.read_bytes())
            ran = run_forked(MODULE, str(tmp_path))
            assert ran.returncode == 0, ran.stderr
            files.append(run.partial_file.read_bytes())
        return True

    make_run(experiment(), run, verifier=remembering, should_continue=should_continue)
    before, after = files
    assert before == after
    assert run.complete_file.read_bytes() == complete_file


@pytest.mark.slow
def test_repeatedly_killed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    ran = run_forked(MODULE, str(tmp_path), "2")
    assert ran.returncode == 0, ran.stderr
    resumed_at = json.loads(ran.stdout)
    assert all(0 < saved < ROUNDS - 1 for saved in resumed_at), (
        "a run did not resume from a snapshot"
    )
    uninterrupted, broken = (run_in(tmp_path / name).complete_file for name in ("whole", "broken"))
    assert broken.read_bytes() == uninterrupted.read_bytes()


def design_of(planned: Experiment) -> str:
    return header_of(planned, run_in(Path(), planned)).design


def test_more_seeds_more_arms_and_another_wording_do_not_change_the_design() -> None:
    arms = [*experiment().arms[:1], replace(experiment().arms[0], name="more")]
    more = replace(
        experiment(),
        seeds=[1, 2],
        question="Or so?",
        baseline="2/2",
        arms=[*arms, run_in(Path()).arm],
    )
    assert design_of(more) == design_of(experiment())


@pytest.mark.parametrize(
    "changed",
    [
        experiment(rounds=6),
        experiment(phase="confirmatory"),
        experiment(train={"epsilon": 0.1}),
        experiment(base="small"),
        experiment(arms=[{"name": "4/0"}, {"name": "2/2", "train": {"mix": "2/2"}}]),
    ],
)
def test_everything_that_affects_the_numbers_is_part_of_the_design(changed: Experiment) -> None:
    assert design_of(changed) != design_of(experiment())


class LaterExperiment(Experiment, frozen=True):
    """An experiment of a later version, with a setting that this version lacks."""

    shuffle: str = "never"


def test_unused_settings_of_a_later_version_do_not_change_the_design() -> None:
    plain = experiment()
    later = LaterExperiment(**{name: getattr(plain, name) for name in plain.__struct_fields__})
    assert design_of(later) == design_of(plain)
    assert design_of(replace(later, shuffle="always")) != design_of(plain)


def test_pickled_experiment_has_the_same_design() -> None:
    assert design_of(pickle.loads(pickle.dumps(experiment()))) == design_of(experiment())


def test_files_are_named_by_arm_and_seed() -> None:
    arm = replace(experiment().arms[0], name="4/4, sender + novel 0.5")
    assert Run(Path("out"), arm, 7).complete_file == Path("out/runs/4-4-sender-novel-0.5-7.jsonl")
