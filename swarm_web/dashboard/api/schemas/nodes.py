"""Answers about nodes: judge score, training reward and participation are three numbers."""

from ninja import Schema
from pydantic import Field

from swarm_web.dashboard.api.schemas.fields import (
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
    Score,
    SeasonName,
    Title,
)
from swarm_web.dashboard.api.schemas.rounds import RulingOut, ScoreOut


class NodeItem(Schema):
    """A node, in short."""

    node: NodeName
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    connected: Connected
    last_seen: Moment | None
    joined_at: Moment


class NodesOut(Schema):
    """Nodes by name."""

    items: list[NodeItem]
    next: Next


class VerdictOut(Schema):
    """Whether the node works, and why."""

    state: str = Field(description="`good`, `waiting` or `bad`.", examples=["good"])
    text: str = Field(description="The verdict in words.")
    reason: str = Field(description="Why, in words.")


class CellOut(Schema):
    """A node's share in one dataset, with its interval at 95 %."""

    correct: int = Field(description="How many questions it solved.", examples=[14])
    n: Answered
    share: float = Field(description="Their quotient.", examples=[0.4375])
    interval: Interval


class NodeKeyOut(Schema):
    """A public key that the node signs its answers with."""

    public: str = Field(
        description="Ed25519, in hex.",
        examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
    )
    first_seen: Moment


class AnswerSpeedOut(Schema):
    """How fast a node answered in its last round, beside its training."""

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


class HandOutOut(Schema):
    """Why rollouts of the node are handed out less than those of others."""

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


class NodeOut(Schema):
    """A node: judge score, training reward and participation are three different numbers."""

    node: NodeName
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    connected: Connected
    last_seen: Moment | None
    verdict: VerdictOut
    season: SeasonName | None
    rank: Rank
    remark: Remark
    of: int = Field(description="How many nodes are ranked.", examples=[41])
    score: Score | None
    interval: Interval | None
    n: Answered
    rounds: int = Field(description="How many rounds it answered.", examples=[4])
    missed: int = Field(description="How many it missed though it was invited.", examples=[0])
    cells: dict[str, CellOut] = Field(description="By dataset.")
    over_base: OverBase
    over_base_interval: Interval | None
    speed: AnswerSpeedOut | None
    hand_out: HandOutOut | None = Field(description="Null: like those of others.")
    rulings: list[RulingOut]
    keys: list[NodeKeyOut] = Field(description="Oldest first; more than one is a change.")
    step: int = Field(description="Training steps made, as reported.", examples=[310])
    training_reward: float | None = Field(
        description="Mean reward of its own rollouts, as reported; no judge score.", examples=[0.52]
    )
    informative_share: float | None = Field(
        description="Share of its rollouts whose completions got different rewards.",
        examples=[0.6],
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
        description="Rollouts that it declared informative and our verifier checked.",
        examples=[40],
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
    scores: list[ScoreOut] = Field(description="Its latest results in the season, newest first.")
