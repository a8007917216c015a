"""Verdicts on answers, and how they are read from the values on the step board."""

import functools
from dataclasses import dataclass
from typing import Literal

from swarm_tasks.step_board import NO_ANSWER, NOT_SCORED, SOLVED, TIMEOUT, VERIFIER_ERROR

Reason = Literal["right", "partial", "wrong", "no_answer", "timeout", "verifier_error"]
_REASONS: dict[float, Reason] = {
    NO_ANSWER: "no_answer",
    TIMEOUT: "timeout",
    VERIFIER_ERROR: "verifier_error",
}


@dataclass(frozen=True)
class Verdict:
    """The result of scoring an answer: `score` in [0, 1], and `reason`, such as `wrong`."""

    score: float
    reason: Reason

    @property
    def solved(self) -> bool:
        """Whether the answer counts as right."""
        return self.score >= SOLVED

    @property
    def failed(self) -> bool:
        """Whether the verifier hung or failed on the answer; `score` is then 0 and says nothing."""
        return self.reason in ("timeout", "verifier_error")


@dataclass(frozen=True)
class Attempt:
    """The result of scoring an answer in limited time; `seconds` is the time that it took.

    `verdict` is None if there was no time to score the answer, or if scoring it was stopped by a
    time limit shorter than the verifier's deadline.
    """

    verdict: Verdict | None
    seconds: float


@functools.lru_cache(maxsize=1024)
def read_verdict(value: float) -> Verdict:
    """Return the verdict for a value of the step board.

    A value from 0 to 1 is the verdict's score. Any other value gives the score 0. The reason is
    then the one that `_REASONS` has for the value, or `verifier_error` if it has none.
    """
    if not 0 <= value <= 1:
        return Verdict(0.0, _REASONS.get(value, "verifier_error"))
    if value >= SOLVED:
        return Verdict(value, "right")
    return Verdict(value, "partial" if value > 0 else "wrong")


def read_attempt(value: float, seconds: float) -> Attempt:
    """Return the attempt for a text's value and seconds on the step board.

    It has no verdict if the value is NOT_SCORED.
    """
    return Attempt(None if value == NOT_SCORED else read_verdict(value), seconds)
