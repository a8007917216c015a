"""Detection of score jumps: which nodes are found and which are not."""

import numpy as np
import pytest
from scipy.stats import betabinom

from judge.statistics.jumps import JumpFinding, ScoreHistory, find_jumps

N = 32
STEADY = [(3, N), (4, N), (2, N), (3, N), (4, N)]


def steady_nodes(count: int) -> list[ScoreHistory]:
    """Return nodes whose latest score is like their earlier ones."""
    return [ScoreHistory(node, STEADY, (3, N)) for node in range(1000, 1000 + count)]


def flag_alone(start: float, gain: float, *, runs: int, seed: int) -> float:
    """Return the share of runs of 100 rounds in which a node is ever flagged, tested alone."""
    shares = np.clip(start + gain * np.arange(100), 0, 1)
    correct = np.random.default_rng(seed).binomial(N, shares, size=(runs, 100)).tolist()
    histories = [
        ScoreHistory(
            run, [(c, N) for c in correct[run][max(0, now - 5) : now]], (correct[run][now], N)
        )
        for run in range(runs)
        for now in range(3, 100)
    ]
    findings = find_jumps(histories, alpha=1.0)
    return len({finding.node for finding in findings if finding.p_value <= 0.001}) / runs


def test_only_a_sudden_jump_is_found() -> None:
    findings = find_jumps([*steady_nodes(999), ScoreHistory(1, STEADY, (29, N))])
    assert [finding.node for finding in findings] == [1]
    assert (findings[0].correct, findings[0].n) == (29, N)
    assert findings[0].expected == pytest.approx(0.1 + 0.02 * 3)


@pytest.mark.slow
@pytest.mark.parametrize(("start", "gain"), [(0.0, 0.02), (0.1, 0.02), (0.1, 0.01), (0.4, 0.0)])
def test_steady_learners_are_flagged_in_less_than_one_of_a_hundred_runs(
    start: float, gain: float
) -> None:
    assert flag_alone(start, gain, runs=400, seed=11) < 0.01


def test_a_drop_is_no_finding() -> None:
    assert not find_jumps([ScoreHistory(1, [(29, N)] * 5, (2, N))])


def test_a_node_with_fewer_than_three_earlier_rounds_is_not_tested() -> None:
    young = ScoreHistory(1, STEADY[:2], (32, N))
    assert not find_jumps([young])
    (finding,) = find_jumps([young, ScoreHistory(2, STEADY[:3], (32, N))])
    assert (finding.node, finding.nodes, finding.rounds) == (2, 1, 3)


def test_only_the_last_five_rounds_count() -> None:
    history = ScoreHistory(1, [(30, N)] * 20 + STEADY, (29, N))
    (finding,) = find_jumps([history])
    assert finding.expected == pytest.approx(0.16)


def test_the_allowance_for_learning_is_limited_to_a_full_score() -> None:
    (finding,) = find_jumps([ScoreHistory(1, [(N, N)] * 3, (N, N))], alpha=1.0)
    assert finding.expected == 1


def test_the_p_value_is_the_beta_binomial_tail() -> None:
    # 12 questions seen: 3 right, and .02 * 4 * (3 + 2 + 1) for learning.
    (finding,) = find_jumps([ScoreHistory(1, [(1, 4), (1, 4), (1, 4)], (7, 10))], alpha=1.0)
    right = 3 + 0.02 * 4 * 6
    assert finding.p_value == pytest.approx(betabinom.sf(6, 10, right + 0.5, 12 - right + 0.5))


def test_a_long_history_weighs_as_much_as_32_questions() -> None:
    (finding,) = find_jumps([ScoreHistory(1, [(50, 256)] * 5, (120, 256))], alpha=1.0)
    right = 32 * (50 / 256 + 0.06)
    tail = betabinom.sf(119, 256, right + 0.5, 32 - right + 0.5)
    assert finding.p_value == pytest.approx(tail, rel=1e-6)


def test_rounds_may_differ_in_size() -> None:
    findings = find_jumps(
        [ScoreHistory(1, STEADY, (8, 8)), ScoreHistory(2, STEADY, (64, 64))], alpha=1.0
    )
    assert sorted(finding.n for finding in findings) == [8, 64]
    assert findings[0].n == 64


def test_p_values_are_adjusted_over_tested_nodes() -> None:
    (finding,) = find_jumps([*steady_nodes(49), ScoreHistory(1, STEADY, (29, N))])
    assert finding.p_adjusted == pytest.approx(50 * finding.p_value, abs=0)


def test_no_histories_give_no_findings() -> None:
    assert find_jumps([]) == []


def test_a_finding_describes_its_figures_in_a_sentence() -> None:
    finding = JumpFinding(1, 0.16, 1e-10, 2.2e-6, 29, 32, 5, 1000)
    assert finding.describe() == (
        "29 of 32 questions right; 5.1 expected from the 5 rounds before "
        "(p = 2e-06 after Holm's adjustment over 1,000 nodes)"
    )
