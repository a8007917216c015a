"""Bodies of answers about the arms."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from swarm_web.dashboard.reports.compare import METHOD, ClaimReport, CompareReport
from swarm_web.dashboard.reports.seasons import SEASONS_METHOD, SeasonsReport

# What is copied as it is.
_CLAIM = (
    *("model", "n_swarm", "n_isolated", "difference", "interval", "p_value", "p_adjusted"),
    *("verdict", "missing", "unadjusted", "spread"),
)


def describe_comparison(report: CompareReport, seasons: Iterable[SeasonsReport]) -> dict[str, Any]:
    """Describe a season's claims about the arms, and what all seasons say together."""
    return {
        "season": report.season.name if report.season else "",
        "final": report.final,
        "look": report.look,
        "next_look": report.next_look,
        "trial_rounds": report.season.trial_rounds if report.season else None,
        "method": METHOD,
        "assignment": {
            "coin": report.assignment.coin,
            "nodes": report.assignment.nodes,
            "random": report.assignment.is_random,
            "words": report.assignment.words,
        },
        "tested": report.tested,
        "items": [_describe_claim(claim) for claim in report.claims],
        "seasons_method": SEASONS_METHOD,
        "seasons": [
            {"model": told.model, "words": told.words, **asdict(told.claim)} for told in seasons
        ],
    }


def _describe_claim(report: ClaimReport) -> dict[str, Any]:
    return {
        **{name: getattr(report.claim, name) for name in _CLAIM},
        "words": report.words,
        "missing_words": report.missing,
        "power_words": report.power,
        "updated_at": report.updated_at,
    }
