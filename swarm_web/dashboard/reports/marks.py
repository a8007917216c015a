"""What became of an answer: a sign, a word and the verifier's reason; pure."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


class Outcome(StrEnum):
    """What an answer is worth."""

    RIGHT = "right"
    WRONG = "wrong"
    UNGRADED = "ungraded"
    NONE = "none"


_SIGNS = {
    "right": "✓",
    "partial": "◐",
    "wrong": "✕",
    "no_answer": "∅",
    "timeout": "…",
    "verifier_error": "!",
}
# Translated where one of them is asked for: a page asks some hundred times.
_WORDS = {
    "partial": gettext_lazy("partly right"),
    "no_answer": gettext_lazy("no <answer> tags"),
    "timeout": gettext_lazy("check timed out"),
    "verifier_error": gettext_lazy("could not be checked"),
}
UNGRADED_SIGN = "?"
NONE_SIGN = "·"


@dataclass(frozen=True)
class Mark:
    """One node's answer to one question, as a table shows it.

    `verdict` is the verifier's reason (`swarm_tasks.verifier`). `latency_ms` counts from the offer
    of the questions, and `second` from the opening of the round.
    """

    solved: bool | None
    verdict: str = ""
    latency_ms: int | None = None
    second: float | None = None

    @property
    def outcome(self) -> Outcome:
        """What the answer is worth; nothing came where `second` is None."""
        if self.second is None:
            return Outcome.NONE
        if self.solved is None:
            return Outcome.UNGRADED
        return Outcome.RIGHT if self.solved else Outcome.WRONG

    @property
    def sign(self) -> str:
        """One character, so that colour is never alone."""
        if self.outcome is Outcome.NONE:
            return NONE_SIGN
        if self.outcome is Outcome.UNGRADED:
            return UNGRADED_SIGN
        return _SIGNS["right"] if self.solved else _SIGNS.get(self.verdict, _SIGNS["wrong"])

    @property
    def words(self) -> str:
        """The verdict in words, with the verifier's reason."""
        if self.outcome is Outcome.NONE:
            return _("no answer received")
        if self.outcome is Outcome.UNGRADED:
            return _("not graded")
        return _("right") if self.solved else describe_verdict(self.verdict)


def describe_verdict(verdict: str) -> str:
    """Say in words why an answer is not right."""
    known = _WORDS.get(verdict)
    return _("wrong") if known is None else str(known)


def explain_signs() -> list[tuple[str, str]]:
    """Return each sign with its meaning, for the key of a table."""
    signs = [(sign, describe_verdict(verdict)) for verdict, sign in _SIGNS.items()]
    signs[0] = (_SIGNS["right"], _("right"))
    return [*signs, (UNGRADED_SIGN, _("not graded")), (NONE_SIGN, _("no answer received"))]
