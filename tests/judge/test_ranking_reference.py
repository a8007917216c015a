"""The judge's evidence compared with a general test of the same kind from a library."""

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
    """Return the differences of two nodes' answers, one of which is ahead by `lead` at .3."""
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, ROUND * ROUNDS))
    # Three of ten questions are equally hard for both.
    other = np.where(rng.random(other.size) < 0.3, one, other)
    differences: Differences = (one < 0.3 + lead).astype(float) - (other < 0.3)
    return differences


def questions_until_ours(differences: Differences) -> float:
    """Return after how many questions our evidence reaches 1 / ALPHA, checked after each round."""
    weight = 1 / ROUND
    scale = Scale(smallest=weight, largest=weight, all_differ=ROUND * weight**2)
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
    """Return the same for betting by Waudby-Smith and Ramdas (2024), checked at each question."""
    found = BettingTest(0.5, alpha=ALPHA).fit((differences + 1) / 2).stopping_time()
    return np.inf if found is None else found


@pytest.mark.slow
def test_a_lead_of_five_points_needs_less_evidence_than_a_general_test() -> None:
    seasons = [draw_season(seed, lead=0.05) for seed in range(SEASONS)]
    ours = np.median([questions_until_ours(each) for each in seasons])
    theirs = np.median([questions_until_theirs(each) for each in seasons])
    assert ours < 0.8 * theirs


@pytest.mark.slow
def test_both_tests_keep_their_error_rate() -> None:
    seasons = [draw_season(seed, lead=0) for seed in range(SEASONS)]
    # At most 3 of 60 seasons are expected; 9 or more have a probability below .01.
    assert sum(questions_until_ours(each) < np.inf for each in seasons) < 9
    assert sum(questions_until_theirs(each) < np.inf for each in seasons) < 9
