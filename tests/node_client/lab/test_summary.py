"""A summary states what reports show, even if the result is not the expected one."""

from pathlib import Path

import msgspec
import pytest

from node_client.lab.report.making import encode_report, make_report
from node_client.lab.results import read_results
from node_client.lab.summary import SummaryError, make_summary
from tests.node_client.lab.folders import ALONE, MIXED, LabFolder

SPARSE = '[[claims]]\nanswers = "sparse"\nreport = "sparse"\narm = "4/4"\nat_least = 1.94\n'
RECIPE = '[[claims]]\nanswers = "recipe"\nreport = "sparse"\narm = "2/6"\nagainst = "4/4"\n'


def write_report(folder: Path, *, mixed: float = 0.2, phase: str = "confirmatory") -> None:
    """Write a report in which isolated nodes earn .1 a round, 2/6 earns .3, and 4/4 `mixed`."""
    arms = ALONE + MIXED + MIXED.replace("4/4", "2/6")
    lab = LabFolder(folder, arms=arms, seeds=[1, 2, 3, 4, 5, 6], phase=phase)
    lab.add_all({"8/0": [0.1, 0.1], "4/4": [mixed, mixed], "2/6": [0.3, 0.3]})
    (folder / "report.json").write_bytes(encode_report(make_report(read_results(folder))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_report(tmp_path / "sparse")
    return tmp_path


def summarise(folder: Path, claims: str) -> dict[str, dict[str, object]]:
    (folder / "summary.toml").write_text(claims, encoding="utf-8")
    return make_summary(folder)


def test_gain_of_sharing_is_stated_with_its_certainty(folder: Path) -> None:
    sparse = summarise(folder, SPARSE)["sparse"]
    assert (sparse["gain"], sparse["p"], sparse["seeds"]) == (2.0, 2 / 64, 6)
    assert sparse["interval"] == [2.0, 2.0]
    assert sparse["sentence"] == (
        "Cumulative own reward: 4/4 against 8/0 in sparse +100 %"
        " [+100 % to +100 %, 6 seeds, p = .031] (as expected)."
    )


def test_gain_below_the_expected_one_is_stated_as_such(tmp_path: Path) -> None:
    write_report(tmp_path / "sparse", mixed=0.15)
    sparse = summarise(tmp_path, SPARSE)["sparse"]
    assert sparse["gain"] == 1.5
    assert str(sparse["sentence"]).endswith(
        "+50 % [+50 % to +50 %, 6 seeds, p = .031] (not as expected)."
    )


def test_recipe_is_compared_with_the_named_arm(folder: Path) -> None:
    recipe = summarise(folder, RECIPE)["recipe"]
    assert (recipe["name"], recipe["gain_over_uniform"]) == ("2/6", 1.5)
    assert recipe["confirmed_on_unseen"] is True


def test_recipe_is_not_confirmed_by_an_exploratory_report(tmp_path: Path) -> None:
    write_report(tmp_path / "sparse", phase="exploratory")
    recipe = summarise(tmp_path, RECIPE)["recipe"]
    assert recipe["confirmed_on_unseen"] is False
    assert "not evidence" in str(recipe["sentence"])


def test_recipe_that_loses_once_is_not_confirmed(folder: Path) -> None:
    write_report(folder / "dense", mixed=0.35)
    dense = RECIPE.replace("sparse", "dense") + 'expects = "no less"\n'
    recipe = summarise(folder, RECIPE + dense)["recipe"]
    assert recipe["confirmed_on_unseen"] is False
    assert "1 of 2 as expected" in str(recipe["sentence"])


def test_recipe_must_win_everywhere_so_each_test_has_the_full_level(folder: Path) -> None:
    write_report(folder / "other", mixed=0.25)
    recipe = summarise(folder, RECIPE + RECIPE.replace("sparse", "other"))["recipe"]
    assert (recipe["p"], recipe["confirmed_on_unseen"]) == (2 / 64, True)


def test_no_less_is_decided_by_the_lower_end_of_the_interval(folder: Path) -> None:
    write_report(folder / "dense", mixed=0.315)
    dense = RECIPE.replace("sparse", "dense") + 'expects = "no less"\n'
    assert summarise(folder, dense)["recipe"]["confirmed_on_unseen"] is True
    strict = summarise(folder, dense + "at_least = 1.0\n")
    assert strict["recipe"]["confirmed_on_unseen"] is False


def test_several_comparisons_for_a_question_are_adjusted_together(folder: Path) -> None:
    twice = SPARSE + SPARSE.replace("4/4", "2/6")
    assert summarise(folder, twice)["sparse"]["p"] == 4 / 64


def test_comparison_decided_by_its_interval_is_not_adjusted_for(folder: Path) -> None:
    both = SPARSE + SPARSE.replace("4/4", "2/6") + 'expects = "no less"\n'
    assert summarise(folder, both)["sparse"]["p"] == 2 / 64


def test_unmeasured_question_is_stated_as_such(folder: Path) -> None:
    answers = summarise(folder, SPARSE)
    assert answers["poisoning"] == {
        "sentence": "Not measured yet.",
        "figures": [],
        "pending": 0,
    }
    assert answers["recipe"]["gain_over_uniform"] is None


def test_summary_can_be_written_as_json(folder: Path) -> None:
    answers = msgspec.json.decode(msgspec.json.encode(summarise(folder, SPARSE)))
    assert answers["sparse"]["figures"][0]["comparison"]["arm"] == "4/4"


def test_unknown_arm_is_refused_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(SummaryError, match="no arm 3/5") as caught:
        summarise(folder, SPARSE.replace("4/4", "3/5"))
    assert "8/0, 4/4, 2/6" in caught.value.fix


def test_missing_report_is_named(folder: Path) -> None:
    with pytest.raises(SummaryError, match="missing"):
        summarise(folder, SPARSE.replace('"sparse"\narm', '"missing"\narm'))


def test_report_that_is_not_utf_8_is_refused(folder: Path) -> None:
    (folder / "sparse" / "report.json").write_bytes(b'{"name": "\xff"}')
    with pytest.raises(SummaryError, match="cannot be read"):
        summarise(folder, SPARSE)


def announce(folder: Path) -> str:
    """Write an experiment without a report, and return a claim on it."""
    (folder / "experiments").mkdir()
    (folder / "experiments" / "later.toml").touch()
    return SPARSE.replace('"sparse"\narm', '"later"\narm')


def test_claim_on_an_experiment_without_a_report_is_pending(folder: Path) -> None:
    sparse = summarise(folder, SPARSE + announce(folder))["sparse"]
    assert (len(msgspec.to_builtins(sparse["figures"])), sparse["pending"]) == (1, 1)
    assert str(sparse["sentence"]).endswith("1 more to be measured.")


def test_pending_claim_counts_among_the_tests(folder: Path) -> None:
    assert summarise(folder, SPARSE + announce(folder))["sparse"]["p"] == 4 / 64


def test_recipe_is_not_confirmed_while_a_claim_on_it_is_pending(folder: Path) -> None:
    later = announce(folder).replace("sparse", "recipe")
    assert summarise(folder, RECIPE + later)["recipe"]["confirmed_on_unseen"] is False


def test_report_with_missing_runs_is_refused(tmp_path: Path) -> None:
    write_report(tmp_path / "sparse")
    (tmp_path / "sparse" / "runs" / "4-4-6.jsonl").unlink()
    report = make_report(read_results(tmp_path / "sparse"))
    (tmp_path / "sparse" / "report.json").write_bytes(encode_report(report))
    with pytest.raises(SummaryError, match="lacks runs: 4-4-6"):
        summarise(tmp_path, SPARSE)


def test_unknown_question_is_refused(folder: Path) -> None:
    with pytest.raises(SummaryError, match="answers"):
        summarise(folder, SPARSE.replace('answers = "sparse"', 'answers = "speed"'))


def test_comparison_without_an_expectation_only_describes(folder: Path) -> None:
    claim = SPARSE.replace("at_least = 1.94", 'expects = "nothing"').replace("sparse", "map", 1)
    found = summarise(folder, claim)["map"]
    assert str(found["sentence"]).endswith("6 seeds, p = .031].")
    assert "expected" not in str(found["sentence"])
    assert msgspec.to_builtins(found["figures"])[0]["holds"] is None


def test_descriptive_comparison_is_not_adjusted_for(folder: Path) -> None:
    described = SPARSE.replace("at_least = 1.94", 'expects = "nothing"')
    sparse = summarise(folder, SPARSE + described.replace("4/4", "2/6"))["sparse"]
    assert sparse["p"] == 2 / 64


def test_outcome_of_whole_runs_is_refused_for_a_group(tmp_path: Path) -> None:
    groups = "".join("[[arms.groups]]\nnodes = 1\n" for _ in range(2))
    lab = LabFolder(tmp_path / "sparse", arms=(ALONE + groups) + (MIXED + groups))
    lab.add_all({"8/0": [0.1, 0.1], "4/4": [0.3, 0.3]})
    report = make_report(read_results(lab.path))
    (lab.path / "report.json").write_bytes(encode_report(report))
    name = report.arms[0].groups[0].name
    claim = SPARSE + f'group = "{name}"\noutcome = "forgetting"\n'
    with pytest.raises(SummaryError, match="measured for whole runs"):
        summarise(tmp_path, claim)


def test_group_without_the_same_nodes_in_the_baseline_is_refused(tmp_path: Path) -> None:
    groups = "".join(f"[[arms.groups]]\nnodes = {nodes}\n" for nodes in (2, 2))
    lab = LabFolder(tmp_path / "sparse", arms=ALONE + MIXED + groups)
    lab.add_all({"8/0": [0.1, 0.1], "4/4": [0.2, 0.2, 0.3, 0.3]})
    (lab.path / "report.json").write_bytes(encode_report(make_report(read_results(lab.path))))
    with pytest.raises(SummaryError, match="has no nodes 3–4"):
        summarise(tmp_path, SPARSE + 'group = "nodes 3–4 (tiny)"\n')
