"""The read API's /nodes: the list, one node, and its results.

Judge score, training reward and participation are three different numbers.
"""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from pydantic import Field

from judge import models
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
    describe,
    read_under,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_page, read_rows
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

router = Router(tags=["nodes"])


class NodeFields(ReportSchema):
    """The fields of every response about a node."""

    model_config = read_under(node="title model parameters arm last_seen".split())

    node: NodeName = at("node.name")
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    connected: Connected
    last_seen: Moment | None


class NodeItem(NodeFields):
    """A node, in short."""

    joined_at: Moment = at("node.created_at")


class NodesOut(ReportSchema):
    """Nodes, sorted by name."""

    items: list[NodeItem]
    next: Next


class VerdictOut(ReportSchema):
    """Whether the node works, and why."""

    state: str = describe("`good`, `waiting` or `bad`.", "good")
    text: str = describe("The verdict in words.")
    reason: str = describe("Why, in words.")


class CellOut(ReportSchema):
    """A node's share of solved questions in one dataset, with its 95 % interval."""

    correct: int = describe("How many questions it solved.", 14)
    n: Answered
    share: float = describe("Solved divided by counted.", 0.4375)
    interval: Interval


class NodeKeyOut(ReportSchema):
    """A public key that the node signs its answers with."""

    public: str = describe(
        "Ed25519, in hex.", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    )
    first_seen: Moment


class AnswerSpeedOut(ReportSchema):
    """How fast a node answered in its last round, compared with its speed in training."""

    number: int = describe("The round's number.", 12)
    answers: int = describe("How many answers arrived.", 32)
    milliseconds: int = describe("From the offer of the questions to the last answer.", 2400)
    training: float | None = describe(
        "Completions a second in training, estimated from the node's reports.", 6.4
    )
    ratio: float | None = describe("Answers a second, divided by that.", 2.1)
    is_suspicious: bool = describe("Whether its model can hardly have written the answers.", False)


class HandOutOut(ReportSchema):
    """How much less often the node's rollouts are sent to other nodes, and why."""

    model_config = read_under(row="level charge since until".split())

    level: str = describe("`lowered`: a quarter as often; `withheld`: not at all.", "lowered")
    charge: str = describe(
        "`refused`, `flooding`, `unheeding`, `copying`, `worthless`, `misdeclared`, "
        "`too_right` or `operator`.",
        "copying",
    )
    why: str = describe("What was found, in words.")
    remedy: str = describe("What its owner can do, in words.")
    since: Moment | None
    until: Moment | None = describe("When the level rises by itself, if it does.")


class NodeOut(NodeFields):
    """A node: judge score, training reward and participation are three different numbers."""

    model_config = read_under(
        node="title model parameters arm last_seen".split(),
        standing="rank remark score interval n rounds missed".split(),
        participation=(
            "step training_reward informative_share published rejected delivered local_used "
            "used_by_others declared_checked declared_false external_used external_dropped"
        ).split(),
    )

    verdict: VerdictOut
    season: SeasonName | None = at("season_name")
    rank: Rank
    remark: Remark
    of: int = at("ranked", "How many nodes are ranked.", 41)
    score: Score | None
    interval: Interval | None
    n: Answered
    rounds: int = describe("How many rounds it answered.", 4)
    missed: int = describe("How many it missed although it was invited.", 0)
    cells: dict[str, CellOut] = at("cells_by_dataset", "By dataset.")
    over_base: OverBase
    over_base_interval: Interval | None
    speed: AnswerSpeedOut | None
    hand_out: HandOutOut | None = describe("Null if its rollouts are handed out normally.")
    rulings: list[RulingOut]
    keys: list[NodeKeyOut] = at("signing_keys", "Oldest first; more than one is a change.")
    step: int = describe("Training steps made, as reported.", 310)
    training_reward: float | None = describe(
        "Mean reward of its own rollouts, as reported; no judge score.", 0.52
    )
    informative_share: float | None = describe(
        "Share of its rollouts whose completions got different rewards.", 0.6
    )
    published: int = describe("Rollouts that it published.", 1240)
    rejected: int = describe("Rollouts that the relay refused.", 0)
    delivered: int = describe("Rollouts of others delivered to it.", 1240)
    delivered_to_others: int | None = describe(
        "How often its rollouts were delivered to others.", 1190
    )
    local_used: int = describe("Own rollouts that it trained on.", 1240)
    used_by_others: int = describe(
        "How many times other nodes trained on one of its rollouts, by their reports.", 640
    )
    declared_checked: int = describe(
        "Rollouts that it declared informative and the site's verifier checked.", 40
    )
    declared_false: int = describe("Those of them without both right and wrong completions.", 0)
    declarations_count: bool = describe(
        "Whether its declarations count: not while too many are false.", True
    )
    external_used: int = describe("Rollouts of others it trained on.", 812)
    external_dropped: dict[str, int] = describe(
        "Rollouts of others that it did not train on, by reason."
    )
    scores: list[ScoreOut] = describe("Its latest results in the season, newest first.")


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
    """List all nodes, or those whose names begin with `search`, by name."""
    now = timezone.now()
    return read_page(
        list_nodes_by_name(search),
        cursor=cursor,
        limit=limit,
        report=lambda node: NodeLine(node, connected=node.is_connected(now=now)),
    )


@read(router, "/nodes/{name}", NodeOut)
def get_node(request: HttpRequest, name: NodePath) -> NodeReport:
    """Show one node, with its figures in the running season.

    If no season is running, the figures are those of the last season.
    """
    return read_report(load_node(name), now=timezone.now())


@read(router, "/nodes/{name}/scores", ScoresOut)
def list_scores_of_node(
    request: HttpRequest, name: NodePath, cursor: Cursor = "", limit: Limit = 100
) -> ListPage[models.Score]:
    """List a node's results in all closed rounds of all seasons, newest round first."""
    return read_rows(list_results_of_node(load_node(name)), cursor=cursor, limit=limit)
