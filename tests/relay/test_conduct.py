"""Rules of conduct: no finding about honest nodes, an early finding about hostile ones."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import binomtest

from node_client.swarm.exchange import MAX_QUEUED_ROLLOUTS
from swarm_web.relay.conduct import (
    MAX_FLOODS,
    MAX_HURRIED,
    PROBATION,
    SIGNIFICANCE,
    Charge,
    Checked,
    Checks,
    Finding,
    Hold,
    Level,
    Sent,
    evaluate_checks,
    evaluate_sent,
    lower,
    recover,
)
from tests.relay.honest_seasons import findings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# A node that solves a tenth of the judge's questions.
WEAK = {"sums": (6, 64)}


def charge(finding: Finding | None) -> Charge | None:
    return finding.charge if finding else None


def all_right(checked: int, *, dataset: str = "sums") -> Checks:
    return Checks(cells={dataset: (checked, checked)})


def count_checks_until_finding(
    found: Iterator[Checked], *, judge_cells: dict[str, tuple[int, int]]
) -> int:
    """Return the number of checks until there is a finding."""
    checks = Checks()
    for number, checked in enumerate(found, start=1):
        checks = checks.add(checked)
        if evaluate_checks(checks, judge_cells=judge_cells):
            return number
    raise AssertionError


# ---- honest nodes


@pytest.mark.parametrize("seed", range(10))
def test_honest_node_has_no_finding_in_a_season(seed: int) -> None:
    assert list(findings(np.random.default_rng(seed))) == []


def test_refused_rollouts_of_a_clients_full_queue_are_no_finding() -> None:
    assert evaluate_sent(Sent(refused=MAX_QUEUED_ROLLOUTS)) is None


def test_refused_messages_of_a_newer_client_are_no_finding() -> None:
    assert evaluate_sent(Sent(published=1200, refused=1000)) is None


def test_rollouts_without_right_answers_are_no_finding() -> None:
    silent = Checks(cells={"sums": (0, 256)})
    assert evaluate_checks(silent, judge_cells={"sums": (0, 256)}) is None


@pytest.mark.parametrize("judge_cells", [{}, {"gcd": (0, 256)}, {"sums": (0, 2)}])
def test_right_answers_are_no_finding_without_enough_judged_questions(
    judge_cells: dict[str, tuple[int, int]],
) -> None:
    assert evaluate_checks(all_right(256), judge_cells=judge_cells) is None


def test_right_answers_at_the_judged_rate_are_no_finding() -> None:
    assert evaluate_checks(all_right(256), judge_cells={"sums": (64, 64)}) is None
    half = Checks(cells={"sums": (128, 256)})
    assert evaluate_checks(half, judge_cells={"sums": (32, 64)}) is None


def test_rollouts_with_right_and_wrong_completions_are_not_too_right() -> None:
    checks = Checks()
    for _ in range(256):
        checks = checks.add(Checked("sums", solved=7, total=8))
    assert evaluate_checks(checks, judge_cells={"sums": (0, 64)}) is None


# ---- hostile nodes


@pytest.mark.parametrize(
    ("sent", "charged"),
    [
        (Sent(refused=144), None),
        (Sent(refused=145), Charge.REFUSED),
        (Sent(published=100, refused=400), Charge.REFUSED),
        (Sent(copies=8), None),
        (Sent(copies=9), Charge.COPYING),
        (Sent(published=50, copies=50), Charge.COPYING),
        (Sent(published=75, copies=25), None),
        (Sent(hurried=MAX_HURRIED), None),
        (Sent(hurried=MAX_HURRIED + 1), Charge.FLOODING),
        (Sent(floods=MAX_FLOODS), None),
        (Sent(floods=MAX_FLOODS + 1), Charge.UNHEEDING),
    ],
)
def test_refusals_are_a_finding_above_the_documented_limits(
    sent: Sent, charged: Charge | None
) -> None:
    assert charge(evaluate_sent(sent)) == charged


@pytest.mark.parametrize(("worthless", "of"), [(4, 4), (8, 20), (14, 64)])
def test_worthless_rollouts_are_found_by_the_exact_binomial_test(worthless: int, of: int) -> None:
    def found(count: int) -> Charge | None:
        checks = Checks(worthless=count, cells={"sums": (0, of - count)})
        return charge(evaluate_checks(checks, judge_cells={}))

    assert found(worthless) == Charge.WORTHLESS
    assert found(worthless - 1) is None
    p = binomtest(worthless, of, 0.05, alternative="greater").pvalue
    assert p < SIGNIFICANCE


def declared(checked: int, *, solved: int, worthless: bool = False) -> Checks:
    checks = Checks()
    for _ in range(checked):
        check = Checked("sums", solved=solved, total=8, worthless=worthless, declared=True)
        checks = checks.add(check)
    return checks


def test_declared_rollouts_without_a_right_completion_are_found_at_check_17() -> None:
    assert evaluate_checks(declared(16, solved=0), judge_cells={}) is None
    assert charge(evaluate_checks(declared(17, solved=0), judge_cells={})) == Charge.MISDECLARED


def test_declared_rollouts_with_only_right_completions_are_no_finding() -> None:
    """A client with older answer rules may have scored some of them as wrong."""
    assert evaluate_checks(declared(256, solved=8), judge_cells={}) is None


def test_worthless_rollouts_are_not_counted_as_misdeclared() -> None:
    checks = declared(3, solved=0, worthless=True)
    assert (checks.worthless, checks.declared, checks.misdeclared) == (3, 0, 0)


def test_weak_node_with_only_right_answers_is_found_at_check_16() -> None:
    assert evaluate_checks(all_right(15), judge_cells=WEAK) is None
    finding = evaluate_checks(all_right(16), judge_cells=WEAK)
    assert finding is not None
    assert (finding.charge, finding.bad, finding.total) == (Charge.TOO_RIGHT, 16, 16)
    assert 0.4 < finding.allowed < 0.5


def test_limit_of_right_answers_is_averaged_over_datasets() -> None:
    """In a dataset without judged questions, all answers may be right."""
    checks = Checks(cells={"sums": (16, 16), "gcd": (16, 16)})
    assert evaluate_checks(checks, judge_cells=WEAK) is None
    more = Checks(cells={"sums": (60, 60), "gcd": (60, 60)})
    assert charge(evaluate_checks(more, judge_cells=WEAK)) == Charge.TOO_RIGHT


def poisoner(random: Generator) -> Iterator[Checked]:
    """Yield checks of a node of which two thirds are poisoned right answers."""
    for _ in count():
        right = random.random() < 2 / 3 or random.random() < 0.1
        yield Checked("sums", solved=8 * right, total=8)


def breaker(random: Generator) -> Iterator[Checked]:
    """Yield checks of a node of which a third make the verifier hang."""
    for _ in count():
        yield Checked("sums", solved=0, total=8, worthless=random.random() < 1 / 3)


@pytest.mark.parametrize("seed", range(20))
def test_hostile_nodes_are_found_despite_honest_rollouts(seed: int) -> None:
    random = np.random.default_rng(seed)
    assert count_checks_until_finding(breaker(random), judge_cells={}) <= 128
    assert count_checks_until_finding(poisoner(random), judge_cells=WEAK) <= 256


# ---- levels


def test_each_finding_lowers_the_level_by_one() -> None:
    lowered = lower(Hold(), now=NOW)
    assert lowered == Hold(Level.LOWERED, 1, NOW + PROBATION)
    withheld = lower(lowered, now=NOW)
    assert withheld == Hold(Level.WITHHELD, 2, NOW + 2 * PROBATION)
    assert lower(withheld, now=NOW) == Hold(Level.WITHHELD, 3, NOW + 4 * PROBATION)
    assert [level.weight for level in Level] == [1, 0.25, 0]


def test_levels_rise_one_at_a_time_and_findings_are_remembered() -> None:
    withheld = Hold(Level.WITHHELD, 2, NOW)
    assert recover(withheld, now=NOW - timedelta(seconds=1)) == withheld
    lowered = recover(withheld, now=NOW)
    assert lowered == Hold(Level.LOWERED, 2, NOW + 2 * PROBATION)
    full = recover(lowered, now=NOW + 2 * PROBATION)
    assert full == Hold(Level.FULL, 2, None)
    assert recover(full, now=NOW + timedelta(days=1)) == full


def test_probation_is_at_most_64_hours() -> None:
    assert lower(Hold(findings=99), now=NOW).until == NOW + timedelta(hours=64)
