"""What several seasons say about sharing, model by model, in plain words."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judge.models import Season
from judge.over_seasons import MIN_SEASONS, SeasonsClaim, compare_seasons
from judge.selectors import differences_by_model, started_seasons
from swarm_web.keyset import Keyset, Listing

SEASONS_METHOD = (
    "Each ended season that assigned arms by coin is one unit: its difference of the arms. "
    "Two-sided exact sign-flip test, valid after each season; the interval is Student's at 95 %, "
    "for one look."
)


@dataclass(frozen=True)
class SeasonsReport:
    """One model's claim over its ended seasons; `words` say what it means or what is missing."""

    model: str
    claim: SeasonsClaim
    words: str


def read_seasons() -> list[SeasonsReport]:
    """Read what ended seasons with a coin say about each model, in one query."""
    claims = {model: compare_seasons(found) for model, found in differences_by_model().items()}
    return [SeasonsReport(model, claim, describe_seasons(claim)) for model, claim in claims.items()]


def list_started_seasons() -> Listing[Season]:
    """List the seasons that have started, newest first."""
    return Listing(started_seasons(), Keyset("-pk"))


def describe_seasons(claim: SeasonsClaim) -> str:
    """Say what several seasons allow to conclude."""
    if claim.missing_seasons:
        return ngettext(
            "Needs %(lacking)s more season of %(least)s to be tested.",
            "Needs %(lacking)s more seasons of %(least)s to be tested.",
            claim.missing_seasons,
        ) % {"lacking": claim.missing_seasons, "least": MIN_SEASONS}
    return {
        "swarm_better": _("Swarms of these seasons do better with sharing than chance explains."),
        "isolated_better": _("Nodes of these seasons do better alone than chance explains."),
    }.get(claim.verdict, _("No difference is shown. That does not prove that there is none."))
