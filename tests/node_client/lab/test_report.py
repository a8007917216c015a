"""The numbers of a report come only from the raw files."""

from pathlib import Path

import pytest

from node_client.lab.records import pack_runs
from node_client.lab.report.making import encode_report, make_report, read_report
from node_client.lab.report.numbers import format_number
from node_client.lab.report.shape import ArmComparison, ArmReport, Outcome, Report
from node_client.lab.results import read_results
from tests.node_client.lab.folders import ALONE, MIXED, LabFolder

SEEDS = [1, 2, 3, 4, 5, 6]


def report_of(folder: Path, *, take_off_at: float | None = None) -> Report:
    return make_report(read_results(folder), take_off_at=take_off_at)


def arm_of(report: Report, name: str) -> ArmReport:
    return next(arm for arm in report.arms if arm.name == name)


def comparison_of(
    report: Report, outcome: Outcome = "own", *, arm: str = "4/4", group: str | None = None
) -> ArmComparison:
    return next(
        each
        for each in report.comparisons
        if (each.arm, each.outcome, each.group) == (arm, outcome, group)
    )


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    """Return a folder in which, with the first seed, 4/4 earns .4 a round and the baseline .2."""
    folder = LabFolder(tmp_path, seeds=SEEDS)
    folder.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    return folder


def test_own_reward_is_summed_over_rounds_and_averaged_over_nodes(lab: LabFolder) -> None:
    outcome = arm_of(report_of(lab.path), "4/4").seeds[0]
    assert outcome.own == pytest.approx(20 * 0.4)
    assert outcome.own_by_node == pytest.approx([20 * 0.3, 20 * 0.5])


def test_single_line_of_raw_data_changes_the_numbers(lab: LabFolder) -> None:
    before = report_of(lab.path)
    lab.change("4/4", 1, 20, reward=[0.7, 0.9])
    after = report_of(lab.path)
    assert arm_of(after, "4/4").seeds[0].own == pytest.approx(20 * 0.4 + 0.4)
    was, now = comparison_of(before).gain, comparison_of(after).gain
    assert was == pytest.approx(2)
    # Seeds earn 1, 1.1, ... 1.5 times as much as the first one, so 7.5 times in all.
    assert now == pytest.approx((20 * 0.4 * 7.5 + 0.4) / (20 * 0.2 * 7.5), rel=1e-5)


def test_training_set_reward_does_not_affect_the_other_outcomes(lab: LabFolder) -> None:
    before = report_of(lab.path)
    lab.change("4/4", 1, 7, set_reward=[1.0, 1.0])
    after = report_of(lab.path)
    assert comparison_of(after) == comparison_of(before)
    assert comparison_of(after, "held_out_area") == comparison_of(before, "held_out_area")
    was, now = arm_of(before, "4/4").training_set, arm_of(after, "4/4").training_set
    assert was.value < now.value


def test_held_out_scores_affect_only_the_held_out_outcomes(lab: LabFolder) -> None:
    before = report_of(lab.path)
    lab.change("4/4", 1, 20, held_out=[1.0, 1.0])
    after = report_of(lab.path)
    assert comparison_of(after) == comparison_of(before)
    assert arm_of(after, "4/4").seeds[0].held_out_final == 1.0


def test_gain_interval_and_test_of_six_pairs(lab: LabFolder) -> None:
    found = comparison_of(report_of(lab.path))
    assert found.gain_low is not None
    assert found.gain_high is not None
    assert found.gain_low < 2 < found.gain_high
    assert (found.p, found.p_greater) == (2 / 64, 1 / 64)
    assert (found.p_adjusted, found.seeds) == (2 / 64, 6)


def test_holm_adjusts_over_the_arms_of_an_experiment(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, arms=ALONE + MIXED + MIXED.replace("4/4", "2/6"), seeds=SEEDS)
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5], "2/6": [0.3, 0.6]})
    assert comparison_of(report_of(tmp_path)).p_adjusted == pytest.approx(4 / 64)


def test_holm_counts_arms_that_have_not_been_run_yet(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, arms=ALONE + MIXED + MIXED.replace("4/4", "2/6"), seeds=SEEDS)
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    report = report_of(tmp_path)
    assert comparison_of(report).p_adjusted == pytest.approx(4 / 64)
    assert report.headline.startswith("Too few seeds")


def test_same_raw_files_give_the_same_bytes(lab: LabFolder) -> None:
    before = encode_report(report_of(lab.path))
    assert encode_report(report_of(lab.path)) == before
    pack_runs(lab.path)
    assert encode_report(report_of(lab.path)) == before


def test_report_json_can_be_read_again(lab: LabFolder) -> None:
    report = report_of(lab.path)
    path = lab.path / "report.json"
    path.write_bytes(encode_report(report))
    assert read_report(path) == report


def test_every_run_is_listed_with_its_digest(lab: LabFolder) -> None:
    before = report_of(lab.path)
    lab.change("4/4", 1, 7, clip=[0.5, 0.5])
    after = report_of(lab.path)
    changed = [run.file for run, was in zip(after.runs, before.runs, strict=True) if run != was]
    assert changed == ["4-4-1.jsonl"]


def test_cost_is_summed_over_nodes_and_rounds(lab: LabFolder) -> None:
    report = report_of(lab.path)
    arm = arm_of(report, "4/4")
    assert arm.tokens == 2 * 20 * 100
    assert arm.bytes == 2 * 20 * (1000 + 3000)
    # What isolated nodes publish is delivered to no node.
    assert arm_of(report, "8/0").bytes == 0


def test_seeds_that_an_arm_lacks_are_omitted_except_in_outcomes_by_seed(lab: LabFolder) -> None:
    lab.run("8/0", 6).complete_file.unlink()
    report = report_of(lab.path)
    assert (report.seeds, report.left_out) == ([1, 2, 3, 4, 5], [6])
    assert comparison_of(report).seeds == 5
    arm = arm_of(report, "4/4")
    assert arm.own.value == pytest.approx(20 * 0.4 * (1 + 1.1 + 1.2 + 1.3 + 1.4) / 5)
    assert [outcome.seed for outcome in arm.seeds] == SEEDS


def test_take_off_level_is_half_of_the_best_arms_end_by_default(
    lab: LabFolder,
) -> None:
    by_default = report_of(lab.path)
    assert by_default.take_off_at == pytest.approx(0.4 * 7.5 / 6 / 2)
    assert arm_of(by_default, "8/0").take_off is None
    explicit = report_of(lab.path, take_off_at=0.15)
    assert arm_of(explicit, "8/0").take_off == 10
    assert explicit.commands[-1].endswith("--take-off-at 0.15")


def climbing(top: float) -> list[list[float]]:
    """Return two nodes' rewards in rounds, which rise evenly to `top`."""
    return [[top * number / 20] * 2 for number in range(1, 21)]


def test_rounds_and_tokens_until_an_arm_reaches_the_baselines_end_are_reported(
    tmp_path: Path,
) -> None:
    lab = LabFolder(tmp_path, seeds=[1, 2, 3])
    for seed in (1, 2, 3):
        lab.add_rounds("8/0", seed, climbing(0.2))
        lab.add_rounds("4/4", seed, climbing(0.4 if seed < 3 else 0.1))
    _, mixed = report_of(tmp_path).reached
    # The baseline's last three evaluations, of rounds 10, 15 and 20, are .15 on average; the
    # arm's are .2 by round 15, and .1 by round 10. Two nodes generate 100 tokens a round each.
    assert (mixed.runs, mixed.rounds, mixed.tokens) == (2, 15, 15 * 200)


def test_nothing_is_reached_if_the_baseline_scores_nothing(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1])
    lab.add_rounds("8/0", 1, climbing(0.0))
    lab.add_rounds("4/4", 1, climbing(0.4))
    assert report_of(tmp_path).reached == []


def test_curves_are_thinned_but_contain_both_ends(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1, 2, 3, 4], rounds=300)
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    curve = arm_of(report_of(tmp_path), "4/4").curves.cumulative
    assert len(curve.rounds) == len(curve.mean) == len(curve.low) == 200
    assert (curve.rounds[0], curve.rounds[-1]) == (1, 300)
    assert curve.mean[-1] == pytest.approx(300 * 0.4 * 1.15)


def test_onset_is_given_in_rounds(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=SEEDS, rounds=60)
    for seed in SEEDS:
        quiet = [[0.01 * (number * seed % 3)] * 2 for number in range(60)]
        lab.add_rounds("8/0", seed, quiet)
        lab.add_rounds("4/4", seed, quiet[:30] + [[0.5, 0.5 + seed / 100]] * 30)
    (onset,) = report_of(tmp_path).onsets
    # The arms are equal for 30 rounds, and the average over ten rounds changes with the next one.
    assert (onset.first, onset.stays) == (31, 31)
    assert onset.rounds[0] == 10


def test_groups_of_different_nodes_are_compared_with_the_baselines_nodes(tmp_path: Path) -> None:
    groups = "".join(
        f'[[arms.groups]]\nnodes = {nodes}\nbase = "{base}"\n'
        for nodes, base in ((1, "tiny"), (2, "small"))
    )
    lab = LabFolder(tmp_path, arms=ALONE + groups + MIXED + groups, seeds=SEEDS)
    lab.add_all({"8/0": [0.1, 0.4, 0.4], "4/4": [0.3, 0.2, 0.2]})
    report = report_of(tmp_path)
    weak = comparison_of(report, group="nodes 1–1 (tiny)")
    strong = comparison_of(report, group="nodes 2–3 (small)")
    assert [weak.gain, strong.gain] == pytest.approx([3, 0.5])
    # Two comparisons of groups; the comparison of whole swarms is a separate family.
    assert strong.p_adjusted == pytest.approx(4 / 64)
    assert comparison_of(report).p_adjusted == pytest.approx(2 / 64)


def test_arm_states_the_settings_in_which_it_differs(tmp_path: Path) -> None:
    arm = MIXED + 'drawing = "informative"\nsource = "self"\npool_rounds = 2\n'
    lab = LabFolder(tmp_path, arms=ALONE + arm)
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    found = arm_of(report_of(tmp_path), "4/4").settings
    assert found == "mix = 4/4, drawing = informative, source = self, pool_rounds = 2"


def test_planted_text_is_compared_only_in_arms_with_an_attacker(tmp_path: Path) -> None:
    attacked = (
        MIXED.replace("4/4", "4/4 attacked", 1)
        + "[[arms.groups]]\nnodes = 2\n[[arms.groups]]\nnodes = 1\nattack = 'poison'\n"
    )
    lab = LabFolder(tmp_path, arms=ALONE + MIXED + attacked, seeds=SEEDS)
    lab.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    for seed in SEEDS:
        lab.add("4/4 attacked", seed, [0.2, 0.2], poisoned=[0.5, 0.7])
    report = report_of(tmp_path)
    assert comparison_of(report, "poisoned", arm="4/4 attacked").difference == pytest.approx(0.6)
    assert [each.arm for each in report.comparisons if each.outcome == "poisoned"] == [
        "4/4 attacked"
    ]
    assert (arm_of(report, "4/4 attacked").nodes, arm_of(report, "4/4 attacked").attackers) == (
        2,
        1,
    )


def test_report_without_held_out_questions_has_no_held_out_outcomes(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, eval_tasks=0)
    lab.add_all({"8/0": [0.1, 0.2], "4/4": [0.3, 0.4]})
    report = report_of(tmp_path)
    assert arm_of(report, "4/4").held_out_area is None
    assert arm_of(report, "4/4").curves.held_out is None
    assert {each.outcome for each in report.comparisons} == {"own", "training_set"}


def test_gain_of_each_horizon_counts_the_rounds_up_to_it(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path, seeds=[1, 2, 3, 4])
    for seed in lab.seeds:
        lab.add("8/0", seed, [0.2, 0.2])
        # Twice the baseline's reward for half of the time, and then the same as the baseline's.
        lab.add_rounds("4/4", seed, [[0.4, 0.4]] * 10 + [[0.2, 0.2]] * 10)
    (horizons,) = report_of(lab.path).horizons
    assert horizons.arm == "4/4"
    assert [after.rounds for after in horizons.gains] == [4, 8, 12, 16, 20]
    assert [after.gain for after in horizons.gains[:2]] == [2.0, 2.0]
    assert horizons.gains[-1].gain == 1.5
    assert (horizons.gains[-1].gain_low, horizons.gains[-1].gain_high) == (1.5, 1.5)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123456, ".0123"), (999.4, "999"), (999.6, "1,000"), (12345.6, "12,346")]
)
def test_number_has_three_digits_or_is_whole(value: float, text: str) -> None:
    assert format_number(value) == text
