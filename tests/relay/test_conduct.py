"""Rules of conduct: honest nodes keep their weight, and each kind of hostile node loses it soon."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import binomtest

from swarm_web.relay.conduct import (
    MAX_FLOODS,
    MAX_HURRIED,
    PROBATION,
    SIGNIFICANCE,
    SPOOL,
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


def checks_until_found(found: Iterator[Checked], *, judge_cells: dict[str, tuple[int, int]]) -> int:
    """Return at which check a node is found."""
    checks = Checks()
    for number, checked in enumerate(found, start=1):
        checks = checks.add(checked)
        if evaluate_checks(checks, judge_cells=judge_cells):
            return number
    raise AssertionError


# ---- honest nodes


@pytest.mark.parametrize("seed", range(10))
def test_an_honest_node_is_never_found_in_a_season(seed: int) -> None:
    assert list(findings(np.random.default_rng(seed))) == []


def test_what_is_owed_after_a_season_ended_is_forgiven() -> None:
    assert evaluate_sent(Sent(refused=SPOOL)) is None


def test_messages_that_only_a_newer_client_sends_are_no_evidence() -> None:
    assert evaluate_sent(Sent(published=1200, refused=1000)) is None


def test_no_completion_with_an_answer_is_no_evidence() -> None:
    silent = Checks(cells={"sums": (0, 256)})
    assert evaluate_checks(silent, judge_cells={"sums": (0, 256)}) is None


@pytest.mark.parametrize("judge_cells", [{}, {"gcd": (0, 256)}, {"sums": (0, 2)}])
def test_right_answers_are_no_evidence_where_the_judge_has_hardly_asked(
    judge_cells: dict[str, tuple[int, int]],
) -> None:
    assert evaluate_checks(all_right(256), judge_cells=judge_cells) is None


def test_a_node_may_be_right_as_often_as_the_judge_finds() -> None:
    assert evaluate_checks(all_right(256), judge_cells={"sums": (64, 64)}) is None
    half = Checks(cells={"sums": (128, 256)})
    assert evaluate_checks(half, judge_cells={"sums": (32, 64)}) is None


def test_rollouts_with_right_and_wrong_completions_are_no_evidence_of_being_too_right() -> None:
    checks = Checks()
    for _ in range(256):
        checks = checks.add(Checked("sums", solved=7, total=8))
    assert evaluate_checks(checks, judge_cells={"sums": (0, 64)}) is None


# ---- hostile nodes


@pytest.mark.parametrize(
    ("sent", "charged"),
    [
        (Sent(refused=80), None),
        (Sent(refused=81), Charge.REFUSED),
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
def test_what_is_refused_is_evidence_from_a_stated_amount_on(
    sent: Sent, charged: Charge | None
) -> None:
    assert charge(evaluate_sent(sent)) == charged


@pytest.mark.parametrize(("worthless", "of"), [(4, 4), (8, 20), (14, 64)])
def test_worthless_rollouts_are_found_by_the_exact_test(worthless: int, of: int) -> None:
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


def test_declared_rollouts_without_a_right_completion_are_found_at_the_stated_check() -> None:
    assert evaluate_checks(declared(16, solved=0), judge_cells={}) is None
    assert charge(evaluate_checks(declared(17, solved=0), judge_cells={})) == Charge.MISDECLARED


def test_declared_rollouts_that_are_all_right_here_are_no_evidence() -> None:
    """A client with older rules for reading answers found some of them wrong."""
    assert evaluate_checks(declared(256, solved=8), judge_cells={}) is None


def test_what_the_verifier_fails_on_is_not_counted_as_declared_falsely() -> None:
    checks = declared(3, solved=0, worthless=True)
    assert (checks.worthless, checks.declared, checks.misdeclared) == (3, 0, 0)


def test_a_weak_node_with_only_right_answers_is_found_at_the_stated_check() -> None:
    assert evaluate_checks(all_right(15), judge_cells=WEAK) is None
    finding = evaluate_checks(all_right(16), judge_cells=WEAK)
    assert finding is not None
    assert (finding.charge, finding.bad, finding.total) == (Charge.TOO_RIGHT, 16, 16)
    assert 0.4 < finding.allowed < 0.5


def test_right_answers_count_against_the_mean_limit_of_their_datasets() -> None:
    """Half of the checks are in a dataset that the judge did not ask: there all may be right."""
    checks = Checks(cells={"sums": (16, 16), "gcd": (16, 16)})
    assert evaluate_checks(checks, judge_cells=WEAK) is None
    more = Checks(cells={"sums": (60, 60), "gcd": (60, 60)})
    assert charge(evaluate_checks(more, judge_cells=WEAK)) == Charge.TOO_RIGHT


def poisoner(random: Generator) -> Iterator[Checked]:
    """Two thirds of its rollouts are right answers with poison, the others its own."""
    for _ in count():
        right = random.random() < 2 / 3 or random.random() < 0.1
        yield Checked("sums", solved=8 * right, total=8)


def breaker(random: Generator) -> Iterator[Checked]:
    """A third of its rollouts let the verifier hang."""
    for _ in count():
        yield Checked("sums", solved=0, total=8, worthless=random.random() < 1 / 3)


@pytest.mark.parametrize("seed", range(20))
def test_hostile_nodes_are_found_among_their_own_honest_rollouts(seed: int) -> None:
    random = np.random.default_rng(seed)
    assert checks_until_found(breaker(random), judge_cells={}) <= 128
    assert checks_until_found(poisoner(random), judge_cells=WEAK) <= 256


# ---- levels


def test_a_node_goes_down_by_one_level_with_each_finding() -> None:
    lowered = lower(Hold(), now=NOW)
    assert lowered == Hold(Level.LOWERED, 1, NOW + PROBATION)
    withheld = lower(lowered, now=NOW)
    assert withheld == Hold(Level.WITHHELD, 2, NOW + 2 * PROBATION)
    assert lower(withheld, now=NOW) == Hold(Level.WITHHELD, 3, NOW + 4 * PROBATION)
    assert [level.weight for level in Level] == [1, 0.25, 0]


def test_levels_come_back_one_by_one_and_findings_are_remembered() -> None:
    withheld = Hold(Level.WITHHELD, 2, NOW)
    assert recover(withheld, now=NOW - timedelta(seconds=1)) == withheld
    lowered = recover(withheld, now=NOW)
    assert lowered == Hold(Level.LOWERED, 2, NOW + 2 * PROBATION)
    full = recover(lowered, now=NOW + 2 * PROBATION)
    assert full == Hold(Level.FULL, 2, None)
    assert recover(full, now=NOW + timedelta(days=1)) == full


def test_the_time_of_a_level_ends_after_64_hours_at_most() -> None:
    assert lower(Hold(findings=99), now=NOW).until == NOW + timedelta(hours=64)
