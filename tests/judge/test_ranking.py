"""Ranks: the fast count against McNemar and Holm pair by pair."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from judge import ranking
from judge.ranking import rank_nodes

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Round = tuple[Bools, Bools, Floats]


def draw_round(*, nodes: int, questions: int, seed: int, missing: float = 0.1) -> Round:
    """Return who solved and answered what, and plain scores, for nodes that differ a lot."""
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.normal(0, 1.5, (nodes, 1)), rng.normal(0, 1, questions)
    solved = rng.random((nodes, questions)) < 1 / (1 + np.exp(difficulty - skill))
    answered = rng.random((nodes, questions)) >= missing
    return solved, answered, score(solved, answered)


def score(solved: Bools, answered: Bools) -> Floats:
    return np.asarray((solved & answered).sum(axis=1) / np.maximum(1, answered.sum(axis=1)))


def rank_pair_by_pair(solved: Bools, answered: Bools, scores: Floats) -> list[tuple[int, int]]:
    """Return what `rank_nodes` must, by statsmodels and a loop."""
    pairs = list(combinations(range(len(solved)), 2))
    won, p_values = [], []
    for i, j in pairs:
        shared = answered[i] & answered[j]
        only_i = int((solved[i] & ~solved[j] & shared).sum())
        only_j = int((solved[j] & ~solved[i] & shared).sum())
        won.append(only_i - only_j)
        p_values.append(float(mcnemar([[0, only_i], [only_j, 0]], exact=True).pvalue))
    significant = multipletests(p_values, alpha=0.05, method="holm")[0]
    better, worse = np.zeros(len(solved), int), np.zeros(len(solved), int)
    for (i, j), lead, is_significant in zip(pairs, won, significant, strict=True):
        up, down = (i, j) if lead > 0 else (j, i)
        if is_significant and scores[up] > scores[down]:
            better[down] += 1
            worse[up] += 1
    return list(zip(1 + better, len(solved) - worse, strict=True))


def as_pairs(ranks: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> list[tuple[int, int]]:
    return list(zip(ranks[0], ranks[1], strict=True))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("nodes", "questions"),
    # statsmodels takes a third of a second for all pairs of many nodes.
    [(2, 12), (7, 30), (16, 60), pytest.param(24, 300, marks=pytest.mark.slow)],
)
def test_ranks_are_those_of_mcnemar_and_holm_pair_by_pair(
    nodes: int, questions: int, seed: int
) -> None:
    judged = draw_round(nodes=nodes, questions=questions, seed=seed)
    assert as_pairs(rank_nodes(*judged)) == rank_pair_by_pair(*judged)


@pytest.mark.parametrize("tile", [1, 3, 16, 17])
def test_ranks_do_not_depend_on_how_pairs_are_cut_into_tiles(
    tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = draw_round(nodes=16, questions=60, seed=3)
    monkeypatch.setattr(ranking, "_TILE", tile)
    assert as_pairs(rank_nodes(*judged)) == rank_pair_by_pair(*judged)


@pytest.mark.parametrize(
    ("solved_by_each", "ranks"),
    [
        # 6 : 0 has p = .031: above .05/3, but the last of three thresholds is .05.
        ([40, 6, 0], [(1, 1), (2, 2), (3, 3)]),
        # 5 : 0 has p = .0625.
        ([40, 5, 0], [(1, 1), (2, 3), (2, 3)]),
        # The first threshold stops two equal pairs together.
        ([6, 0, 0], [(1, 3), (1, 3), (1, 3)]),
    ],
)
def test_thresholds_grow_as_pairs_are_told_apart(
    solved_by_each: list[int], ranks: list[tuple[int, int]]
) -> None:
    solved = np.arange(40) < np.array(solved_by_each)[:, None]
    answered = np.ones_like(solved)
    assert as_pairs(rank_nodes(solved, answered, score(solved, answered))) == ranks


def test_no_pair_is_told_apart_after_the_first_that_is_not() -> None:
    # 9 : 1 has p = .0215, above .05/3; 11 : 2 has p = .0225, below the next threshold .05/2.
    answered = np.ones((3, 23), np.bool_)
    answered[1, 10:] = answered[2, :10] = False
    solved = np.zeros_like(answered)
    solved[0, :9] = solved[1, 9] = solved[0, 10:21] = solved[2, 21:] = True
    ranks = rank_nodes(solved, answered, score(solved, answered))
    assert as_pairs(ranks) == [(1, 3), (1, 3), (1, 3)]


def test_moving_nodes_moves_their_ranks_along() -> None:
    solved, answered, scores = draw_round(nodes=30, questions=200, seed=5)
    order = np.random.default_rng(0).permutation(30)
    best, worst = rank_nodes(solved, answered, scores)
    moved = rank_nodes(solved[order], answered[order], scores[order])
    assert as_pairs(moved) == as_pairs((best[order], worst[order]))
    assert len(set(best)) > 5


def test_nodes_with_the_same_answers_share_ranks() -> None:
    solved, answered, scores = draw_round(nodes=10, questions=200, seed=6)
    twice = np.repeat(np.arange(10), 2)
    best, worst = rank_nodes(solved[twice], answered[twice], scores[twice])
    assert as_pairs((best[::2], worst[::2])) == as_pairs((best[1::2], worst[1::2]))


def test_questions_that_only_one_of_two_answered_do_not_count() -> None:
    solved = np.zeros((2, 64), np.bool_)
    solved[0, :32] = True
    answered = np.ones_like(solved)
    assert as_pairs(rank_nodes(solved, answered, np.array([0.5, 0.0]))) == [(1, 1), (2, 2)]
    answered[1, :32] = False
    assert as_pairs(rank_nodes(solved, answered, np.array([0.5, 0.0]))) == [(1, 2), (1, 2)]


@pytest.mark.parametrize("scores", [[0.4, 0.5], [0.5, 0.5]])
def test_a_node_whose_macro_score_is_not_higher_is_not_better(scores: list[float]) -> None:
    solved = np.zeros((2, 64), np.bool_)
    solved[0, :32] = True
    answered = np.ones_like(solved)
    assert as_pairs(rank_nodes(solved, answered, np.array(scores))) == [(1, 2), (1, 2)]
    assert as_pairs(rank_nodes(solved[::-1], answered, np.array(scores[::-1]))) == [(1, 2), (1, 2)]


@pytest.mark.parametrize(("nodes", "questions"), [(0, 0), (0, 8), (1, 0), (1, 8), (4, 0)])
def test_nobody_is_ranked_above_anybody_without_a_pair_or_a_question(
    nodes: int, questions: int
) -> None:
    nothing = np.ones((nodes, questions), np.bool_)
    ranks = rank_nodes(nothing, nothing, np.zeros(nodes))
    assert as_pairs(ranks) == [(1, nodes)] * nodes
