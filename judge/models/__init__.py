"""The judge's tables and database constraints."""

from judge.models.oversight import Flag, Ruling
from judge.models.record import ChainLink, SiteKey
from judge.models.rounds import Answer, Question, Round, Seat
from judge.models.scores import (
    Comparison,
    Counted,
    Ledger,
    RoundSummary,
    Score,
    Standing,
    Window,
)
from judge.models.seasons import CoinBlock, Enrolment, Season

__all__ = [
    "Answer",
    "ChainLink",
    "CoinBlock",
    "Comparison",
    "Counted",
    "Enrolment",
    "Flag",
    "Ledger",
    "Question",
    "Round",
    "RoundSummary",
    "Ruling",
    "Score",
    "Season",
    "Seat",
    "SiteKey",
    "Standing",
    "Window",
]
