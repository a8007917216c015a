"""The read API's /compare: what the judge claims about swarm and isolated nodes."""

from django.http import HttpRequest
from ninja import Router

from swarm_web.dashboard.api.fields import (
    Interval,
    Model,
    Moment,
    ReportSchema,
    SeasonName,
    at,
    describe,
    read_under,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.compare import CompareReport, read_comparison

router = Router(tags=["compare"])


class AssignmentOut(ReportSchema):
    """How many nodes got their arm by coin flip; a causal claim requires that all nodes did."""

    coin: int = describe("Nodes whose arm was assigned by coin.", 40)
    nodes: int = describe("Nodes that have an arm.", 41)
    random: bool = at("is_random", "Whether all arms were assigned by coin.", False)
    words: str = describe("Which conclusion this allows, in words.")


class MissingOut(ReportSchema):
    """How many more nodes and rounds are needed before a model's arms can be compared."""

    swarm_nodes: int = describe("How many more swarm nodes.", 2)
    isolated_nodes: int = describe("How many more isolated nodes.", 0)
    rounds: int = describe("How many more rounds.", 3)


class SpreadOut(ReportSchema):
    """How much nodes' scores vary, as standard deviations; 0.05 means 5 percentage points."""

    nodes: float = describe("Between the nodes of an arm, over all rounds.", 0.05)
    rounds: float = describe("Of a node's figure in one round.", 0.08)


class ClaimOut(ReportSchema):
    """The comparison of the arms for one model in a season; differences are swarm - isolated."""

    model_config = read_under(
        claim=(
            "model n_swarm n_isolated difference unadjusted interval p_value p_adjusted verdict "
            "missing spread"
        ).split()
    )

    model: Model
    n_swarm: int = describe("Swarm nodes compared.", 20)
    n_isolated: int = describe("Isolated nodes compared.", 21)
    difference: float | None = describe(
        "As a fraction of one, adjusted for what was known of the nodes before; null "
        "without nodes in both arms.",
        0.04,
    )
    unadjusted: float | None = describe("The plain difference.", 0.05)
    interval: Interval | None
    p_value: float | None = describe(
        "Two-sided, valid at every interim test; null if not tested.", 0.01
    )
    p_adjusted: float | None = describe("After Holm, over all models.", 0.02)
    verdict: str = describe(
        "`swarm_better`, `isolated_better`, `not_shown` or `too_few`.", "not_shown"
    )
    words: str = describe("The verdict in words.")
    missing: MissingOut | None
    missing_words: str = at("missing", "What is missing, in words.")
    spread: SpreadOut | None = describe("How much nodes differ; null if not tested.")
    power_words: str = at("power", "How many nodes a claim would need, in words.")
    updated_at: Moment


class SeasonsClaimOut(ReportSchema):
    """The comparison over ended seasons with arms assigned by coin flip; the unit is a season."""

    model_config = read_under(
        claim="n_seasons difference interval p_value verdict missing_seasons".split()
    )

    model: Model
    n_seasons: int = describe("Seasons compared.", 6)
    difference: float | None = describe(
        "Mean of swarm - isolated over seasons; null if no season has both.", 0.03
    )
    interval: Interval | None
    p_value: float | None = describe("Exact sign-flip test.", 0.03)
    verdict: str = describe("As in `items`.", "swarm_better")
    missing_seasons: int = describe("How many more seasons a test needs.", 0)
    words: str = describe("The verdict in words.")


class CompareOut(ReportSchema):
    """The judge's claims: for each model, whether its swarm or its isolated nodes score higher."""

    season: SeasonName = at("season_name")
    final: bool = describe("Whether this was the last test.", False)
    look: int = describe("Rounds at the test that the claims are from.", 75)
    next_look: int | None = describe("Rounds at the next test.", 100)
    trial_rounds: int | None = describe("Rounds at the last test.", 200)
    method: str = describe("How `items` were computed.")
    assignment: AssignmentOut
    tested: int = describe("For how many models the arms were compared by a test.", 2)
    items: list[ClaimOut] = at("claims")
    seasons_method: str = describe("How `seasons` were computed.")
    seasons: list[SeasonsClaimOut]


@read(router, "/compare", CompareOut)
def get_comparison(request: HttpRequest) -> CompareReport:
    """Return the results of the judge's comparison of swarm and isolated nodes, for each model."""
    return read_comparison()
