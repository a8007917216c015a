"""The judge's evidence beside a general test of the same kind, from a library."""

import numpy as np
import numpy.typing as npt
import pytest
from ville import BettingTest

from swarm_record.ranking import Scale, Stretch, weigh

ROUND, ROUNDS = 32, 200
SEASONS = 60
ALPHA = 0.05

Differences = npt.NDArray[np.float64]


def draw_season(seed: int, *, lead: float) -> Differences:
    """Return the differences of two nodes' answers, where one is ahead by `lead` of .3."""
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, ROUND * ROUNDS))
    # What is hard is hard for both on three of ten questions.
    other = np.where(rng.random(other.size) < 0.3, one, other)
    differences: Differences = (one < 0.3 + lead).astype(float) - (other < 0.3)
    return differences


def questions_until_ours(differences: Differences) -> float:
    """Return after how many questions our evidence reaches 1 / ALPHA, looked at each round."""
    weight = 1 / ROUND
    scale = Scale(least=weight, most=weight, all_differ=ROUND * weight**2)
    sums: list[Differences] = []
    for number, own in enumerate(differences.reshape(-1, ROUND) * weight):
        if number & (number - 1) == 0:
            sums.append(np.zeros(4))
        sums[-1] = sums[-1] + [own.sum(), (own**2).sum(), 0, 1]
        stretches = [Stretch(*each.reshape(4, 1)) for each in sums]
        if weigh(stretches, scale)[0] >= np.log(1 / ALPHA):
            return (number + 1) * ROUND
    return np.inf


def questions_until_theirs(differences: Differences) -> float:
    """Return the same of betting as in Waudby-Smith and Ramdas (2024), looked at each question."""
    found = BettingTest(0.5, alpha=ALPHA).fit((differences + 1) / 2).stopping_time()
    return np.inf if found is None else found


@pytest.mark.slow
def test_a_lead_of_five_points_takes_less_than_a_general_test_needs() -> None:
    seasons = [draw_season(seed, lead=0.05) for seed in range(SEASONS)]
    ours = np.median([questions_until_ours(each) for each in seasons])
    theirs = np.median([questions_until_theirs(each) for each in seasons])
    assert ours < 0.8 * theirs


@pytest.mark.slow
def test_neither_finds_a_lead_that_is_not_there_more_often_than_promised() -> None:
    seasons = [draw_season(seed, lead=0) for seed in range(SEASONS)]
    # Of 60 seasons 3 are expected at most; 9 or more have a chance below one in a hundred.
    assert sum(questions_until_ours(each) < np.inf for each in seasons) < 9
    assert sum(questions_until_theirs(each) < np.inf for each in seasons) < 9
