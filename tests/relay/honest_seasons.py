"""Simulated honest nodes with policies that are worst cases for the rules of conduct."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from swarm_web.relay.conduct import (
    CHECKS_PER_WINDOW,
    SPOOL,
    Checked,
    Checks,
    Finding,
    Sent,
    evaluate_checks,
    evaluate_sent,
)

ROUNDS = 200
SENT_PER_ROUND = 100
CHECKED_PER_ROUND = 8
JUDGED_PER_ROUND = 8
ROUNDS_PER_HOUR = 6
# The share of the worst policy measured in docs/decisions/0040-window.md.
LOOKALIKES = 0.043
DATASETS = ("sums", "gcd")


def findings(random: Generator) -> Iterator[Finding]:
    """Yield the findings about one honest node in a season; none are expected.

    A question is solved always or never, so that all completions are right as often as the judge
    measures. In some rounds the policy improves suddenly; in a tenth of the seasons it collapses
    suddenly halfway. Of 100 rollouts, 1 is refused and 4.3 look like copies; 1 of 200 is worthless,
    and 1 of 20 that are declared informative has no right completion. Once in a season the node
    publishes all rollouts of its queue after the season that they belong to has ended.
    """
    yield from _in_checks(random)
    yield from _in_declarations(random)
    yield from _in_sent(random)


def _in_sent(random: Generator) -> Iterator[Finding]:
    late = random.integers(ROUNDS)
    for first in range(0, ROUNDS, ROUNDS_PER_HOUR):
        sent = Sent()
        for number in range(first, first + ROUNDS_PER_HOUR):
            refused = random.binomial(SENT_PER_ROUND, 0.01) + SPOOL * (number == late)
            copies = random.binomial(SENT_PER_ROUND, LOOKALIKES)
            sent = Sent(
                published=sent.published + SENT_PER_ROUND - copies,
                refused=sent.refused + int(refused),
                copies=sent.copies + int(copies),
            )
            if finding := evaluate_sent(sent):
                yield finding


def _in_checks(random: Generator) -> Iterator[Finding]:
    checks, judged = Checks(), dict.fromkeys(DATASETS, (0, 0))
    for share in _learn(random):
        for _ in range(CHECKED_PER_ROUND):
            dataset = DATASETS[random.integers(len(DATASETS))]
            solved = 8 * int(random.random() < share)
            checks = checks.add(Checked(dataset, solved, 8, worthless=random.random() < 0.005))
            if finding := evaluate_checks(checks, judge_cells=judged):
                yield finding
        for dataset, (solved, n) in judged.items():
            more = int(random.binomial(JUDGED_PER_ROUND, share))
            judged[dataset] = (solved + more, n + JUDGED_PER_ROUND)
        if checks.total >= CHECKS_PER_WINDOW:
            checks, judged = Checks(), dict.fromkeys(DATASETS, (0, 0))


def _in_declarations(random: Generator) -> Iterator[Finding]:
    checks = Checks()
    for solved in 4 * random.binomial(1, 0.95, size=ROUNDS * CHECKED_PER_ROUND):
        checks = checks.add(Checked(DATASETS[0], int(solved), 8, declared=True))
        if finding := evaluate_checks(checks, judge_cells={}):
            yield finding
        if checks.total >= CHECKS_PER_WINDOW:
            checks = Checks()


def _learn(random: Generator) -> Iterator[float]:
    share = 0.02
    collapses = random.random() < 0.1
    leaps = set(random.choice(ROUNDS, size=4, replace=False))
    for number in range(ROUNDS):
        share += (0.95 - share) * (0.6 if number in leaps else 0.005)
        if collapses and number == ROUNDS // 2:
            share = 0.02
        yield float(np.clip(share, 0, 1))
