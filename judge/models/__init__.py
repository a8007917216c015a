"""The judge's tables, with the rules that the database enforces."""

from judge.models.oversight import Flag, Ruling
from judge.models.record import ChainLink, SiteKey
from judge.models.rounds import Answer, Question, Round, Seat
from judge.models.scores import Comparison, Counted, Ledger, Score, Standing, Window
from judge.models.seasons import CoinBlock, Enrolment, Season
from judge.models.summaries import RoundSummary

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
