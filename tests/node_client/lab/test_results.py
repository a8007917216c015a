import gzip
from pathlib import Path

import pytest

from node_client.lab.records import RoundRecord, UnreadableRunError, encode_line, pack_runs
from node_client.lab.results import ResultsError, read_results
from tests.node_client.lab.folders import ALONE, MIXED, LabFolder


def test_results_contain_the_data_of_the_runs(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    results = read_results(tmp_path)
    run = results.arms[1].runs[1]
    assert run.reward.shape == (20, 2)
    assert run.reward[7].tolist() == [0.3, 0.4]
    assert run.held_out_rounds == [0, 5, 10, 15, 20]
    assert (results.paired, results.missing, results.left_out) == ([1, 2, 3], [], [])


def test_compressed_runs_give_the_same_results(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    before = read_results(tmp_path).arms[0].runs[1]
    pack_runs(tmp_path)
    after = read_results(tmp_path).arms[0].runs[1]
    assert (after.file, after.sha256) == (before.file, before.sha256)
    assert after.reward.tolist() == before.reward.tolist()


def test_informative_rollouts_of_incomplete_training_sets_are_counted(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1])
    lab.add("8/0", 1, [0.1, 0.1])
    lab.add("4/4", 1, [0.1, 0.1], generated=[4, 4], external=[4, 2], set_informative=[0.5, 0.5])
    # Four own and four or two external ones, half of them informative.
    assert read_results(tmp_path).arms[1].runs[1].informative_in_set[0].tolist() == [4, 3]


def test_runs_of_another_design_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.write_settings("max_digits = 2", "max_digits = 3")
    with pytest.raises(UnreadableRunError, match="another design"):
        read_results(tmp_path)


def test_runs_of_a_changed_arm_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.write_settings('mix = "4/4"', 'mix = "4/4", importance = "sender"')
    with pytest.raises(UnreadableRunError, match="another design"):
        read_results(tmp_path)


def test_runs_of_unlisted_seeds_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.write_settings(r"seeds = \[1, 2, 3\]", "seeds = [1, 2]")
    with pytest.raises(ResultsError, match="4-4-3, 8-0-3"):
        read_results(tmp_path)


def test_run_that_lacks_a_round_is_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    path = lab.run("4/4", 2).complete_file
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(UnreadableRunError, match="each of its rounds once and in order"):
        read_results(tmp_path)


def test_run_with_an_additional_round_is_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    with lab.run("4/4", 2).complete_file.open("ab") as file:
        file.write(encode_line(RoundRecord(round=0, held_out=[1.0, 1.0])))
    with pytest.raises(UnreadableRunError, match="each of its rounds once and in order"):
        read_results(tmp_path)


@pytest.mark.parametrize(("number", "held_out"), [(5, []), (6, [1.0, 1.0])])
def test_run_with_other_evaluations_is_refused(
    tmp_path: Path, number: int, held_out: list[float]
) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.change("4/4", 2, number, held_out=held_out)
    with pytest.raises(UnreadableRunError, match="the evaluations that"):
        read_results(tmp_path)


@pytest.mark.parametrize("changes", [{"reward": [1e300, 0.1]}, {"tokens": [-1, 5]}])
def test_impossible_numbers_are_refused(tmp_path: Path, changes: dict[str, list[float]]) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.change("4/4", 2, 7, **changes)
    with pytest.raises(UnreadableRunError, match="cannot be read"):
        read_results(tmp_path)


def test_two_files_of_one_run_that_differ_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    run = lab.run("4/4", 2)
    run.packed_file.write_bytes(gzip.compress(run.complete_file.read_bytes()))
    assert len(read_results(tmp_path).paired) == 3
    lab.change("4/4", 2, 7, reward=[0.0, 0.0])
    with pytest.raises(ResultsError, match="not the same run"):
        read_results(tmp_path)


def test_run_through_a_coordinator_is_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    for number in range(1, lab.rounds + 1):
        lab.change("4/4", 2, number, sent=[], received=[], reflection=[])
    with pytest.raises(UnreadableRunError, match="--through"):
        read_results(tmp_path)


def test_round_with_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    lab.change("4/4", 2, 7, reward=[0.3])
    with pytest.raises(UnreadableRunError, match="2 training nodes"):
        read_results(tmp_path)


def test_seed_without_a_run_of_every_arm_is_omitted(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2]})
    lab.add("4/4", 2, [0.3, 0.4])
    results = read_results(tmp_path)
    assert (results.paired, results.left_out) == ([2], [1, 3])
    assert results.missing == ["4-4-1", "4-4-3"]


def test_arm_without_runs_does_not_prevent_the_comparison_of_others(tmp_path: Path) -> None:
    more = MIXED.replace("4/4", "6/2")
    lab = LabFolder(tmp_path, arms=ALONE + MIXED + more, seeds=[1])
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    results = read_results(tmp_path)
    assert [arm.arm.name for arm in results.arms] == ["8/0", "4/4"]
    assert (results.paired, results.missing) == ([1], ["6-2-1"])


def test_results_without_the_baseline_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add("4/4", 1, [0.3, 0.4])
    with pytest.raises(ResultsError, match="baseline 8/0"):
        read_results(tmp_path)


def test_results_without_a_common_seed_are_refused(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add("8/0", 1, [0.3, 0.4])
    lab.add("4/4", 2, [0.3, 0.4])
    with pytest.raises(ResultsError, match="no seed"):
        read_results(tmp_path)
