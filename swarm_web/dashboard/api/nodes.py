"""The read API's /nodes: the list, one node, and its results.

Judge score, training reward and participation are three different numbers.
"""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.fields import (
    Answered,
    Arm,
    Connected,
    Interval,
    Model,
    Moment,
    Next,
    NodeName,
    OverBase,
    Parameters,
    Rank,
    Remark,
    ReportSchema,
    Score,
    SeasonName,
    Title,
    at,
    read_under,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_page
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.rounds import RulingOut, ScoreOut, ScoresOut
from swarm_web.dashboard.reports.node import (
    NodeLine,
    NodeReport,
    list_nodes_by_name,
    list_results_of_node,
    load_node,
    read_report,
)
from swarm_web.dashboard.reports.round import ScoreReport

router = Router(tags=["nodes"])


class NodeItem(ReportSchema):
    """A node, in short."""

    model_config = read_under(node="title model parameters arm last_seen".split())

    node: NodeName = at("node", "name")
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    connected: Connected
    last_seen: Moment | None
    joined_at: Moment = at("node", "created_at")


class NodesOut(ReportSchema):
    """Nodes by name."""

    items: list[NodeItem]
    next: Next


class VerdictOut(ReportSchema):
    """Whether the node works, and why."""

    state: str = Field(description="`good`, `waiting` or `bad`.", examples=["good"])
    text: str = Field(description="The verdict in words.")
    reason: str = Field(description="Why, in words.")


class CellOut(ReportSchema):
    """A node's share in one dataset, with its interval at 95 %."""

    correct: int = Field(description="How many questions it solved.", examples=[14])
    n: Answered
    share: float = Field(description="Solved divided by counted.", examples=[0.4375])
    interval: Interval


class NodeKeyOut(ReportSchema):
    """A public key that the node signs its answers with."""

    public: str = Field(
        description="Ed25519, in hex.",
        examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
    )
    first_seen: Moment


class AnswerSpeedOut(ReportSchema):
    """How fast a node answered in its last round, compared with its speed in training."""

    number: int = Field(description="The round's number.", examples=[12])
    answers: int = Field(description="How many answers arrived.", examples=[32])
    milliseconds: int = Field(
        description="From the offer of the questions to the last answer.", examples=[2400]
    )
    training: float | None = Field(
        description="Completions a second in training, by the node's reports.", examples=[6.4]
    )
    ratio: float | None = Field(description="Answers a second, divided by that.", examples=[2.1])
    is_suspicious: bool = Field(
        description="Whether its model can hardly have written the answers.", examples=[False]
    )


class HandOutOut(ReportSchema):
    """Why the node's rollouts are handed out less often."""

    model_config = read_under(row="level charge since until".split())

    level: str = Field(
        description="`lowered`: a quarter as often; `withheld`: not at all.", examples=["lowered"]
    )
    charge: str = Field(
        description="`refused`, `flooding`, `unheeding`, `copying`, `worthless`, `misdeclared`, "
        "`too_right` or `operator`.",
        examples=["copying"],
    )
    why: str = Field(description="What was found, in words.")
    remedy: str = Field(description="What its owner can do, in words.")
    since: Moment | None
    until: Moment | None = Field(description="When the level rises by itself, if it does.")


class NodeOut(ReportSchema):
    """A node: judge score, training reward and participation are three different numbers."""

    model_config = read_under(
        node="title model parameters arm last_seen".split(),
        standing="rank remark score interval n rounds missed".split(),
        participation=(
            "step training_reward informative_share published rejected delivered local_used "
            "used_by_others declared_checked declared_false external_used external_dropped"
        ).split(),
    )

    node: NodeName = at("node", "name")
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    connected: Connected
    last_seen: Moment | None
    verdict: VerdictOut
    season: SeasonName | None = at("season_name")
    rank: Rank
    remark: Remark
    of: int = at("ranked", description="How many nodes are ranked.", examples=[41])
    score: Score | None
    interval: Interval | None
    n: Answered
    rounds: int = Field(description="How many rounds it answered.", examples=[4])
    missed: int = Field(description="How many it missed although it was invited.", examples=[0])
    cells: dict[str, CellOut] = at("cells_by_dataset", description="By dataset.")
    over_base: OverBase
    over_base_interval: Interval | None
    speed: AnswerSpeedOut | None
    hand_out: HandOutOut | None = Field(description="Null if its rollouts are handed out normally.")
    rulings: list[RulingOut]
    keys: list[NodeKeyOut] = at(
        "signing_keys", description="Oldest first; more than one is a change."
    )
    step: int = Field(description="Training steps made, as reported.", examples=[310])
    training_reward: float | None = Field(
        description="Mean reward of its own rollouts, as reported; no judge score.", examples=[0.52]
    )
    informative_share: float | None = Field(
        description="Share of its rollouts whose completions got different rewards.", examples=[0.6]
    )
    published: int = Field(description="Rollouts that it published.", examples=[1240])
    rejected: int = Field(description="Rollouts that the relay refused.", examples=[0])
    delivered: int = Field(description="Rollouts of others delivered to it.", examples=[1240])
    delivered_to_others: int | None = Field(
        description="How often its rollouts were delivered to others.", examples=[1190]
    )
    local_used: int = Field(description="Own rollouts that it trained on.", examples=[1240])
    used_by_others: int = Field(
        description="How many times other nodes trained on one of its rollouts, by their reports.",
        examples=[640],
    )
    declared_checked: int = Field(
        description="Rollouts that it declared informative and our verifier checked.", examples=[40]
    )
    declared_false: int = Field(description="Those of them that are not informative.", examples=[0])
    declarations_count: bool = Field(
        description="Whether its declarations count: not while too many are false.",
        examples=[True],
    )
    external_used: int = Field(description="Rollouts of others it trained on.", examples=[812])
    external_dropped: dict[str, int] = Field(
        description="Rollouts of others that it did not train on, by reason."
    )
    scores: list[ScoreOut] = at(
        "score_reports", description="Its latest results in the season, newest first."
    )


NodePath = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9_\-]+$",
        description="The node's name.",
        json_schema_extra={"example": "amber-quiet-heron"},
    ),
]
Search = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9_\-]*$",
        description="The beginning of the names to list; empty for all.",
    ),
]


@read(router, "/nodes", NodesOut)
def list_nodes(
    request: HttpRequest, search: Search = "", cursor: Cursor = "", limit: Limit = 100
) -> ListPage[NodeLine]:
    """List all nodes that ever joined, by name."""
    now = timezone.now()
    return read_page(
        list_nodes_by_name(search),
        cursor=cursor,
        limit=limit,
        report=lambda node: NodeLine(node, connected=node.is_connected(now=now)),
    )


@read(router, "/nodes/{name}", NodeOut)
def get_node(request: HttpRequest, name: NodePath) -> NodeReport:
    """Show one node; the figures are of the season that runs or ran last."""
    return read_report(load_node(name), now=timezone.now())


@read(router, "/nodes/{name}/scores", ScoresOut)
def list_scores_of_node(
    request: HttpRequest, name: NodePath, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[ScoreReport]:
    """List a node's results in all closed rounds of all seasons, newest round first."""
    listing = list_results_of_node(load_node(name))
    return read_page(listing, cursor=cursor, limit=limit, report=ScoreReport)
