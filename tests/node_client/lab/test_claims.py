"""Sentences state what the numbers show, even if the result is not the expected one."""

from pathlib import Path

from node_client.lab.report.claims import headline
from node_client.lab.report.making import make_report
from node_client.lab.report.shape import ArmComparison
from node_client.lab.results import read_results
from tests.node_client.lab.folders import LabFolder


def comparison(arm: str, gain: float, p: float, *, seeds: int = 8) -> ArmComparison:
    return ArmComparison(
        arm=arm,
        against="8/0",
        outcome="own",
        group=None,
        seeds=seeds,
        gain=gain,
        gain_low=gain - 0.2,
        gain_high=gain + 0.2,
        difference=gain - 1,
        difference_low=None,
        difference_high=None,
        p=p,
        p_greater=p / 2,
        p_adjusted=p,
        least_p=2 / 2**seeds,
    )


def test_largest_gain_is_stated_with_its_certainty() -> None:
    sentence = headline(
        [comparison("4/4", 1.94, 0.016), comparison("2/6", 1.5, 0.3)], baseline="8/0", arms=2
    )
    assert sentence == (
        "4/4 gained most over 8/0 in cumulative own reward: +94 % (95 % interval +74 % to +114 %,"
        " 8 paired seeds, p = .016 after Holm). 1 of 2 arms are better than the baseline beyond"
        " chance."
    )


def test_gain_within_chance_is_stated_as_no_gain() -> None:
    sentence = headline([comparison("4/4", 1.1, 0.3)], baseline="8/0", arms=1)
    assert sentence.startswith(
        "No gain over 8/0 in cumulative own reward beyond chance; the largest"
    )


def test_too_few_seeds_show_no_gain() -> None:
    sentence = headline([comparison("4/4", 2, 0.25, seeds=3)], baseline="8/0", arms=1)
    assert sentence.startswith("Too few seeds to show a gain of 4/4 over 8/0")


def test_loss_is_stated_as_a_loss() -> None:
    sentence = headline([comparison("4/4", 0.7, 0.008)], baseline="8/0", arms=1)
    assert sentence.startswith(
        "No gain over 8/0 in cumulative own reward; the smallest loss is 4/4's: −30 %"
    )
    assert sentence.endswith("Worse beyond chance: 4/4.")


def test_baseline_alone_has_nothing_to_compare() -> None:
    assert "nothing to compare" in headline([], baseline="8/0", arms=1)


def test_exploratory_result_is_stated_as_no_evidence(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, phase="exploratory", seeds=[1, 2])
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    notes = make_report(read_results(tmp_path)).notes
    assert notes[0].startswith("Exploratory:")
    assert "not evidence" in notes[0]


def test_missing_runs_and_omitted_seeds_are_stated(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.add_all({"8/0": [0.1, 0.2]})
    lab.add("4/4", 2, [0.3, 0.4])
    notes = " ".join(make_report(read_results(tmp_path)).notes)
    assert "Runs that are missing: 4-4-1, 4-4-3." in notes
    assert "Left out of every figure but the outcomes by seed: 1, 3" in notes


def test_note_states_that_no_test_can_be_significant(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1, 2, 3, 4, 5])
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    (note,) = make_report(read_results(tmp_path)).notes
    assert note.startswith("With 5 paired seeds p is at least .062")


def test_six_confirmatory_seeds_need_no_note(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1, 2, 3, 4, 5, 6])
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    assert make_report(read_results(tmp_path)).notes == []
