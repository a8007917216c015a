"""Summary statistics of a round: turnout, quartiles, question tallies, and arms."""

import numpy as np

from judge.models import RoundSummary
from judge.services.scores import write_scores
from judge.statistics.summaries import MOST_GROUPS, ScoredResult, summarise, tally_datasets
from swarm_record.stream import pack
from tests.judge.toys import Site


def make_result(
    score: float,
    *,
    model: str = "tiny",
    arm: str = "swarm",
    solved: tuple[int, ...] = (),
    competes: bool = True,
) -> ScoredResult:
    bits = np.isin(np.arange(4), solved)
    answered = pack(np.ones(4, dtype=bool))
    return ScoredResult(model, arm, score, answered=answered, solved=pack(bits), competes=competes)


def test_quartiles_are_over_trained_nodes() -> None:
    results = [make_result(score) for score in (0.1, 0.2, 0.3, 0.4, 0.5)]
    summary = summarise([*results, make_result(0.9, arm="base")], questions=4)
    assert (summary.low, summary.median, summary.high, summary.best) == (0.2, 0.3, 0.4, 0.5)
    assert (summary.scored, summary.trained) == (6, 5)


def test_each_question_is_tallied_over_all_nodes() -> None:
    results = [make_result(0.5, solved=(0, 1)), make_result(0.25, arm="base", solved=(1,))]
    assert summarise(results, questions=4).tallies == [(1, 2), (2, 2), (0, 2), (0, 2)]


def test_nodes_that_do_not_compete_count_only_as_participants() -> None:
    cheater = make_result(1.0, solved=(0, 1, 2, 3), competes=False)
    summary = summarise([make_result(0.25, solved=(0,)), cheater], questions=4)
    assert (summary.low, summary.median, summary.high, summary.best) == (0.25,) * 4
    assert (summary.scored, summary.trained, summary.groups[0].nodes) == (2, 1, 1)
    assert summary.tallies == [(2, 2), (1, 2), (1, 2), (1, 2)]


def test_a_round_without_scores_has_no_quartiles() -> None:
    summary = summarise([], questions=2)
    assert (summary.median, summary.best, summary.groups) == (None, None, [])
    assert summary.tallies == [(0, 0), (0, 0)]


def test_nodes_are_grouped_by_model_and_arm() -> None:
    results = [make_result(0.2), make_result(0.4), make_result(0.5, arm="isolated")]
    swarm, isolated = summarise(results, questions=4).groups
    assert (swarm.nodes, round(swarm.mean, 9), round(swarm.variance, 9)) == (2, 0.3, 0.02)
    assert (isolated.arm, isolated.nodes, isolated.variance) == ("isolated", 1, 0.0)


def test_only_the_largest_groups_are_stored() -> None:
    many = [make_result(0.5, model=f"model {i}") for i in range(MOST_GROUPS + 8)]
    groups = summarise([*many, make_result(0.5, model="model 39")], questions=4).groups
    assert len(groups) == MOST_GROUPS
    assert (groups[0].model, groups[0].nodes) == ("model 39", 2)


def test_a_closed_round_has_one_summary(site: Site) -> None:
    site.join("amber", "birch")
    judge_round = site.hold(amber="rrrr", birch="rrww")
    write_scores(judge_round)
    summary = RoundSummary.objects.get(round=judge_round)
    assert (summary.seats, summary.scored, summary.best) == (2, 2, 1.0)
    assert summary.tallies == [[2, 2], [2, 2], [1, 2], [1, 2]]


def test_answers_are_tallied_by_arm_and_dataset() -> None:
    results = [
        ("swarm", {"sums": (1, 4), "words": (2, 2)}),
        ("swarm", {"sums": (3, 4)}),
        ("base", {"sums": (0, 4)}),
    ]
    assert tally_datasets(results) == {
        "swarm": {"sums": (4, 8), "words": (2, 2)},
        "base": {"sums": (0, 4)},
    }


def test_a_rescored_round_is_tallied_again(site: Site) -> None:
    site.join("amber", "birch")
    judge_round = site.hold(amber="rrrr", birch="rrww")
    RoundSummary.objects.update(datasets={})
    write_scores(judge_round)
    cells = RoundSummary.objects.get(round=judge_round).datasets["swarm"].values()
    assert [sum(column) for column in zip(*cells, strict=True)] == [6, 8]
