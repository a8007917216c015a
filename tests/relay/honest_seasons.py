"""Honest nodes whose policies make the rules of conduct as likely to err as they can, simulated."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from swarm_web.relay.conduct import (
    CHECKS_PER_WINDOW,
    Checked,
    Checks,
    Finding,
    Sent,
    evaluate_checks,
    evaluate_sent,
)

ROUNDS = 200
SENT_IN_A_ROUND = 100
CHECKED_IN_A_ROUND = 8
JUDGED_IN_A_ROUND = 8
ROUNDS_IN_AN_HOUR = 6
DATASETS = ("sums", "gcd")


def findings(random: Generator) -> Iterator[Finding]:
    """Yield what the rules find about one honest node in a season, which should be nothing.

    A question is solved always or never, so that all completions are right as often as the judge
    measures. In some rounds the policy learns much at once; in every tenth season it collapses
    half-way, at once. One in 100 rollouts is refused and 2 in 100 look like copies; 1 in 200 is
    worthless, and in 1 of 20 that are declared informative nothing is right. Once in a season it
    sends what it owes to the season before.
    """
    yield from _in_checks(random)
    yield from _in_declarations(random)
    yield from _in_sent(random)


def _in_sent(random: Generator) -> Iterator[Finding]:
    late = random.integers(ROUNDS)
    for first in range(0, ROUNDS, ROUNDS_IN_AN_HOUR):
        sent = Sent()
        for number in range(first, first + ROUNDS_IN_AN_HOUR):
            refused = random.binomial(SENT_IN_A_ROUND, 0.01) + 64 * (number == late)
            copies = random.binomial(SENT_IN_A_ROUND, 0.02)
            sent = Sent(
                published=sent.published + SENT_IN_A_ROUND - copies,
                refused=sent.refused + int(refused),
                copies=sent.copies + int(copies),
            )
            if finding := evaluate_sent(sent):
                yield finding


def _in_checks(random: Generator) -> Iterator[Finding]:
    checks, judged = Checks(), dict.fromkeys(DATASETS, (0, 0))
    for share in _learn(random):
        for _ in range(CHECKED_IN_A_ROUND):
            dataset = DATASETS[random.integers(len(DATASETS))]
            solved = 8 * int(random.random() < share)
            checks = checks.add(Checked(dataset, solved, 8, worthless=random.random() < 0.005))
            if finding := evaluate_checks(checks, judge_cells=judged):
                yield finding
        for dataset, (solved, n) in judged.items():
            more = int(random.binomial(JUDGED_IN_A_ROUND, share))
            judged[dataset] = (solved + more, n + JUDGED_IN_A_ROUND)
        if checks.total >= CHECKS_PER_WINDOW:
            checks, judged = Checks(), dict.fromkeys(DATASETS, (0, 0))


def _in_declarations(random: Generator) -> Iterator[Finding]:
    checks = Checks()
    for solved in 4 * random.binomial(1, 0.95, size=ROUNDS * CHECKED_IN_A_ROUND):
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
