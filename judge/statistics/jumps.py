"""Score jumps: nodes whose latest score is hard to explain by chance and learning; no I/O.

A weak node that suddenly answers nearly everything may have begun to ask a larger model, a tool
or another node. The expectation from its earlier rounds is the Beta-binomial posterior predictive
under Jeffreys' prior (A. Gelman et al., Bayesian Data Analysis, 3rd ed., chapter 2), with two
allowances for honest nodes: they learn, and rounds are not equally hard.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.statistics.flagging import choose_flagged, format_p_value
from swarm_record.stats import adjust_by_holm

# The family-wise error rate: at most one in 1,000 rounds of honest nodes has a flag, if the model
# of their scores holds.
ALPHA = 0.001
# How many of a node's last rounds are pooled at most, and how many it needs to be tested.
MAX_ROUNDS = 5
MIN_ROUNDS = 3
# The judge score, in [0, 1], that an honest node may gain from one round to the next.
LEARNING_PER_ROUND = 0.02
# The largest weight of a history, in questions, however long it is.
MAX_WEIGHT = 32
_JEFFREYS = 0.5

Floats = NDArray[np.float64]
Result = tuple[int, int]


@dataclass(frozen=True)
class ScoreHistory:
    """A node's `latest` result and its `earlier` results, oldest first.

    Each result is (correct, n): the node answered `correct` of `n` > 0 questions right. Questions
    that do not count for the node are left out.
    """

    node: int
    earlier: Sequence[Result]
    latest: Result


@dataclass(frozen=True)
class JumpFinding:
    """A node that answered more questions correctly than its history predicts.

    The node solved `correct` of the `n` questions that count for it in the latest round. `expected`
    is the predicted share, in [0, 1]: the share that the node solved in its last earlier rounds,
    raised by an allowance for learning. `rounds` is the number of these earlier rounds.
    `p_adjusted` is the p-value adjusted over all tested nodes; `nodes` is their number.
    """

    node: int
    expected: float
    p_value: float
    p_adjusted: float
    correct: int
    n: int
    rounds: int
    nodes: int

    def describe(self) -> str:
        """Return an English description of the finding."""
        return (
            f"{self.correct} of {self.n} questions right; {self.expected * self.n:.1f} expected "
            f"from the {self.rounds} rounds before "
            f"({format_p_value(self.p_adjusted)} after Holm's adjustment over {self.nodes:,} nodes)"
        )


def find_jumps(histories: Iterable[ScoreHistory], *, alpha: float = ALPHA) -> list[JumpFinding]:
    """Return the nodes whose latest score exceeds what their history predicts, smallest p first.

    A node's last MAX_ROUNDS earlier rounds are pooled. A node with fewer than MIN_ROUNDS earlier
    rounds is not tested. The p-value is the probability of at least as many correct answers as in
    the latest round. A node is returned if its p-value, Holm-adjusted over the tested nodes, is at
    most `alpha`. Two allowances avoid flags for steady learners:

    - The score of each earlier round is raised by LEARNING_PER_ROUND for each round since then, to
      at most 1: the null hypothesis is "gained at most this much per round", not "stayed the same".
    - The pooled history weighs at most MAX_WEIGHT questions, because the policy changes and
      questions vary: even five long rounds do not determine the next score.

    A node that is tested alone on 32 questions and gains .02 per round or less is flagged at least
    once in 100 rounds with a probability of about 1 in 1000 (without the allowances, up to 1 in 4).
    In rounds of 32 questions, a jump from .1 to .9 is found even among 10,000 nodes; in rounds of
    16 questions, it is found among 60 nodes but not among 1,000. The test cannot see how long ago
    an earlier round was: pass no rounds from before a long absence.
    """
    tested = [history for history in histories if len(history.earlier) >= MIN_ROUNDS]
    if not tested:
        return []
    raised, weights = _pool_histories(tested)
    correct, n = np.array([history.latest for history in tested], dtype=np.float64).T
    p_values = _compute_tails(correct, n, raised * weights, weights)
    adjusted = adjust_by_holm(p_values, hypotheses=len(tested))
    return [
        JumpFinding(
            node=tested[i].node,
            expected=float(raised[i]),
            p_value=float(p_values[i]),
            p_adjusted=float(adjusted[i]),
            correct=int(correct[i]),
            n=int(n[i]),
            rounds=min(len(tested[i].earlier), MAX_ROUNDS),
            nodes=len(tested),
        )
        for i in choose_flagged(adjusted, alpha)
    ]


def _pool_histories(histories: Sequence[ScoreHistory]) -> tuple[Floats, Floats]:
    """Return each history's share of correct answers, and its weight as a number of questions.

    The share is over the last MAX_ROUNDS rounds. Both allowances of `find_jumps` are applied: the
    share is raised for learning, and the weight is at most MAX_WEIGHT.
    """
    results = np.zeros((len(histories), MAX_ROUNDS, 2))
    for row, history in enumerate(histories):
        last = history.earlier[-MAX_ROUNDS:]
        results[row, -len(last) :] = last
    correct, n = results[..., 0], results[..., 1]
    rounds_ago = np.arange(MAX_ROUNDS, 0, -1)
    raised = np.minimum(correct + LEARNING_PER_ROUND * rounds_ago * n, n)
    total = n.sum(axis=1)
    return raised.sum(axis=1) / total, np.minimum(total, MAX_WEIGHT)


def _compute_tails(correct: Floats, n: Floats, right: Floats, seen: Floats) -> Floats:
    """Return the beta-binomial probability [N] of at least `correct` right answers out of `n`.

    In its history, the node answered `right` of `seen` questions right. All arguments are arrays
    [N].

    Sums the upper tail directly: scipy's `betabinom.sf` is slow, and because it is computed as
    `1 - cdf`, it loses all precision below 1e-15.
    """
    # Imported here: it takes most of a second, and few processes need it.
    from scipy.stats import betabinom

    counts = np.arange(n.max() + 1)
    rows, columns = np.nonzero(counts >= correct[:, None])
    alpha, beta = right + _JEFFREYS, seen - right + _JEFFREYS
    tails = np.zeros(len(n))
    np.add.at(tails, rows, betabinom.pmf(counts[columns], n[rows], alpha[rows], beta[rows]))
    return tails
