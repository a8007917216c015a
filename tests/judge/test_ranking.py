"""Ranks: the fast computation against the definition, pair by pair."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from swarm_record import ranking
from swarm_record.ranking import ResultMatrix, Scale, Stretch, rank_nodes, weigh
from tests.judge.naive_ranks import rank_pair_by_pair

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Judged = tuple[ResultMatrix, Floats]


def make_matrix(solved: Bools, answered: Bools, *, per_round: int, single: int) -> ResultMatrix:
    """Return a matrix of rounds; the first `single` rounds have a column per question."""
    nodes, questions = solved.shape
    rounds = questions // per_round
    asked = (nodes, rounds, per_round)
    right, there = (solved & answered).reshape(asked), answered.reshape(asked)
    weight = 1 / per_round
    columns = np.where(there, right * weight, np.nan)[:, :single]
    columns = columns.reshape(nodes, single * per_round)
    later = np.where(there.all(axis=2), right.mean(axis=2), np.nan)[:, single:]
    numbers = [*np.repeat(np.arange(single), per_round), *range(single, rounds)]
    return ResultMatrix(
        values=np.hstack([columns, later]).astype(np.float32),
        weights=np.array([weight] * columns.shape[1] + [1.0] * later.shape[1], np.float32),
        rounds=np.array(numbers, dtype=np.int64),
        questions=columns.shape[1],
    )


def draw_season(
    *, nodes: int, rounds: int, seed: int, missing: float = 0.1, per_round: int = 8
) -> Judged:
    """Return a matrix and scores of very different nodes; half of the rounds have one column."""
    rng = np.random.default_rng(seed)
    questions = rounds * per_round
    skill, difficulty = rng.normal(0, 1.5, (nodes, 1)), rng.normal(0, 1, questions)
    solved = rng.random((nodes, questions)) < 1 / (1 + np.exp(difficulty - skill))
    answered = rng.random((nodes, questions)) >= missing
    matrix = make_matrix(solved, answered, per_round=per_round, single=rounds // 2)
    return matrix, (solved & answered).sum(axis=1) / np.maximum(1, answered.sum(axis=1))


def as_pairs(ranks: tuple[Ints, Ints]) -> list[tuple[int, int]]:
    return list(zip(ranks[0], ranks[1], strict=True))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("nodes", "rounds"), [(2, 4), (7, 10), pytest.param(16, 40, marks=pytest.mark.slow)]
)
def test_ranks_are_those_of_the_definition(nodes: int, rounds: int, seed: int) -> None:
    judged = draw_season(nodes=nodes, rounds=rounds, seed=seed)
    assert as_pairs(rank_nodes(*judged)) == rank_pair_by_pair(*judged)


@pytest.mark.parametrize("tile", [1, 3, 16, 17])
def test_ranks_do_not_depend_on_the_size_of_the_tiles(
    tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = draw_season(nodes=16, rounds=20, seed=3)
    expected = as_pairs(rank_nodes(*judged))
    monkeypatch.setattr(ranking, "_TILE", tile)
    assert as_pairs(rank_nodes(*judged)) == expected
    assert len(set(expected)) > 5


# ---- evidence


def make_stretch(won: int, lost: int, *, unit: float, rounds: int) -> Stretch:
    return Stretch(
        differences=np.array([(won - lost) * unit]),
        by_question=np.array([(won + lost) * unit**2]),
        by_round=np.zeros(1),
        shared=np.array([float(rounds)]),
    )


def test_evidence_averages_one_for_equal_nodes() -> None:
    """All outcomes of eight answers, the first four before the second bet."""
    wealth = [
        math.comb(4, first)
        * math.comb(4, second)
        * math.exp(
            weigh(
                [
                    make_stretch(first, 4 - first, unit=0.125, rounds=1),
                    make_stretch(second, 4 - second, unit=0.125, rounds=1),
                ],
                Scale(least=0.125, most=0.125, all_differ=0.125),
            )[0]
        )
        for first in range(5)
        for second in range(5)
    ]
    assert sum(wealth) / 2**8 == pytest.approx(1)


def test_evidence_on_heavier_questions_averages_at_most_one() -> None:
    wealth = [
        math.comb(4, won)
        * math.exp(
            weigh(
                [make_stretch(won, 4 - won, unit=0.25, rounds=1)],
                Scale(least=0.125, most=0.25, all_differ=0.25),
            )[0]
        )
        for won in range(5)
    ]
    assert 0.5 < sum(wealth) / 2**4 <= 1


# ---- which answers count


def test_permuting_nodes_permutes_their_ranks() -> None:
    matrix, scores = draw_season(nodes=30, rounds=24, seed=5)
    order = np.random.default_rng(0).permutation(30)
    best, worst = rank_nodes(matrix, scores)
    shuffled = ResultMatrix(matrix.values[order], matrix.weights, matrix.rounds, matrix.questions)
    assert as_pairs(rank_nodes(shuffled, scores[order])) == as_pairs((best[order], worst[order]))
    assert len(set(best)) > 5


def duel(solved: Bools, answered: Bools | None = None, *, scores: tuple[float, float]) -> bool:
    """Return whether the first of two nodes ranks above the other; rounds have eight questions."""
    answered = np.ones_like(solved) if answered is None else answered
    matrix = make_matrix(solved, answered, per_round=8, single=solved.shape[1] // 8)
    return as_pairs(rank_nodes(matrix, np.array(scores))) == [(1, 1), (2, 2)]


def test_questions_that_only_one_of_two_answered_do_not_count() -> None:
    solved = np.zeros((2, 64), np.bool_)
    solved[0, :32] = True
    answered = np.ones_like(solved)
    assert duel(solved, answered, scores=(0.5, 0.0))
    answered[1, :32] = False
    assert not duel(solved, answered, scores=(0.5, 0.0))


@pytest.mark.parametrize("scores", [(0.4, 0.5), (0.5, 0.5)])
def test_a_node_without_a_higher_score_does_not_rank_above(scores: tuple[float, float]) -> None:
    solved = np.zeros((2, 64), np.bool_)
    solved[0, :32] = True
    assert not duel(solved, scores=scores)


def test_a_lead_in_a_more_frequent_dataset_does_not_outweigh_the_others() -> None:
    """The first node solves a dataset with 7 questions, the other one with 1: equal scores."""
    weights = np.tile(np.array([1 / 14] * 7 + [1 / 2], np.float32), 40)
    first = np.tile(np.array([True] * 7 + [False]), 40)
    matrix = ResultMatrix(
        values=np.stack([first * weights, ~first * weights]).astype(np.float32),
        weights=weights,
        rounds=np.repeat(np.arange(40), 8),
        questions=320,
    )
    assert as_pairs(rank_nodes(matrix, np.array([0.51, 0.5]))) == [(1, 2), (1, 2)]


@pytest.mark.parametrize(("nodes", "rounds"), [(0, 0), (0, 2), (1, 0), (1, 2), (4, 0)])
def test_no_ranks_differ_without_a_pair_or_a_question(nodes: int, rounds: int) -> None:
    nothing = np.ones((nodes, rounds * 8), np.bool_)
    matrix = make_matrix(nothing, nothing, per_round=8, single=rounds)
    assert as_pairs(rank_nodes(matrix, np.zeros(nodes))) == [(1, nodes)] * nodes
