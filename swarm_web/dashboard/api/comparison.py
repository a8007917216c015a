"""The read API's /compare: what the judge claims about swarm and isolated nodes."""

from dataclasses import dataclass

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.fields import (
    Interval,
    Model,
    Moment,
    ReportSchema,
    SeasonName,
    at,
    read_under,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.compare import (
    METHOD,
    SEASONS_METHOD,
    CompareReport,
    SeasonsReport,
    read_comparison,
    read_seasons,
)

router = Router(tags=["compare"])


class AssignmentOut(ReportSchema):
    """How many nodes had their arm assigned by coin; a causal claim requires that all had."""

    coin: int = Field(description="Nodes whose arm was assigned by coin.", examples=[40])
    nodes: int = Field(description="Nodes that have an arm.", examples=[41])
    random: bool = at(
        "is_random", description="Whether all arms were assigned by coin.", examples=[False]
    )
    words: str = Field(description="Which conclusion this allows, in words.")


class MissingOut(ReportSchema):
    """What is missing before a model can be tested."""

    swarm_nodes: int = Field(description="How many more swarm nodes.", examples=[2])
    isolated_nodes: int = Field(description="How many more isolated nodes.", examples=[0])
    rounds: int = Field(description="How many more rounds.", examples=[3])


class SpreadOut(ReportSchema):
    """Standard deviations of the nodes' adjusted scores, as fractions of one."""

    nodes: float = Field(
        description="Between the nodes of an arm, over all rounds.", examples=[0.05]
    )
    rounds: float = Field(description="Of a node's figure in one round.", examples=[0.08])


class ClaimOut(ReportSchema):
    """The comparison of the arms for one model in a season; differences are swarm - isolated."""

    model_config = read_under(
        claim=(
            "model n_swarm n_isolated difference unadjusted interval p_value p_adjusted verdict "
            "missing spread"
        ).split()
    )

    model: Model
    n_swarm: int = Field(description="Swarm nodes compared.", examples=[20])
    n_isolated: int = Field(description="Isolated nodes compared.", examples=[21])
    difference: float | None = Field(
        description="As a fraction of one, adjusted for what was known of the nodes before; null "
        "without nodes in both arms.",
        examples=[0.04],
    )
    unadjusted: float | None = Field(description="The plain difference.", examples=[0.05])
    interval: Interval | None
    p_value: float | None = Field(
        description="Two-sided, valid at every interim test; null if not tested.", examples=[0.01]
    )
    p_adjusted: float | None = Field(description="After Holm, over all models.", examples=[0.02])
    verdict: str = Field(
        description="`swarm_better`, `isolated_better`, `not_shown` or `too_few`.",
        examples=["not_shown"],
    )
    words: str = Field(description="The verdict in words.")
    missing: MissingOut | None
    missing_words: str = at("missing", description="What is missing, in words.")
    spread: SpreadOut | None = Field(description="How much nodes differ; null if not tested.")
    power_words: str = at("power", description="How many nodes a claim would need, in words.")
    updated_at: Moment


class SeasonsClaimOut(ReportSchema):
    """The comparison over all ended seasons with arms assigned by coin; the unit is a season."""

    model_config = read_under(
        claim="n_seasons difference interval p_value verdict missing_seasons".split()
    )

    model: Model
    n_seasons: int = Field(description="Seasons compared.", examples=[6])
    difference: float | None = Field(
        description="Mean of swarm - isolated; null if not tested.", examples=[0.03]
    )
    interval: Interval | None
    p_value: float | None = Field(description="Exact sign-flip test.", examples=[0.03])
    verdict: str = Field(description="As in `items`.", examples=["swarm_better"])
    missing_seasons: int = Field(description="How many more seasons a test needs.", examples=[0])
    words: str = Field(description="The verdict in words.")


class CompareOut(ReportSchema):
    """The judge's claims about the arms."""

    model_config = read_under(report="final look next_look trial_rounds assignment tested".split())

    season: SeasonName = at("report", "season_name")
    final: bool = Field(description="Whether this was the last test.", examples=[False])
    look: int = Field(description="Rounds at the test that the claims are from.", examples=[75])
    next_look: int | None = Field(description="Rounds at the next test.", examples=[100])
    trial_rounds: int | None = Field(description="Rounds at the last test.", examples=[200])
    method: str = Field(description="How `items` were computed.")
    assignment: AssignmentOut
    tested: int = Field(description="How many models were tested.", examples=[2])
    items: list[ClaimOut] = at("report", "claims")
    seasons_method: str = Field(description="How `seasons` were computed.")
    seasons: list[SeasonsClaimOut]


@dataclass(frozen=True)
class ComparisonAnswer:
    """The claims of one season, and those over all ended seasons."""

    report: CompareReport
    seasons: list[SeasonsReport]
    method: str = METHOD
    seasons_method: str = SEASONS_METHOD


@read(router, "/compare", CompareOut)
def get_comparison(request: HttpRequest) -> ComparisonAnswer:
    """Return the judge's claims about swarm and isolated nodes, by model."""
    return ComparisonAnswer(read_comparison(), read_seasons())
