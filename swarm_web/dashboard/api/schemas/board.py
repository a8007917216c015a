"""Answers about the leaderboard."""

from ninja import Schema
from pydantic import Field

from swarm_web.dashboard.api.schemas.fields import (
    Answered,
    Arm,
    Cells,
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


class BaseItem(Schema):
    """A line of the leaderboard: macro pass@1 over the window, and `cells` per dataset."""

    rank: Rank
    remark: Remark
    node: NodeName
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    score: Score
    interval: Interval
    recent_score: float | None = Field(
        description="The score over the season's last rounds, as many as the window `recent` has.",
        examples=[0.38],
    )
    n: Answered
    rounds: int = Field(description="How many rounds of the window it answered.", examples=[4])
    missed: int = Field(
        description="How many rounds of the window it missed though it was invited.", examples=[1]
    )
    cells: Cells
    used_by_others: int = Field(
        description="How many times other nodes trained on one of its rollouts.", examples=[640]
    )
    external_used: int = Field(
        description="How many rollouts of others it trained on in the season.", examples=[812]
    )
    last_seen: Moment | None
    connected: Connected


class LeaderboardItem(BaseItem):
    """One trained node; nodes that cannot be told apart share ranks."""

    over_base: OverBase
    over_base_interval: Interval | None


class LeaderboardOut(Schema):
    """A season's leaderboard, best first."""

    season: SeasonName
    window: str = Field(description="The window that was asked for.", examples=["season"])
    as_of: Moment
    items: list[LeaderboardItem]
    next: Next
    base: list[BaseItem] = Field(
        description="Untrained models of the page's own kinds, for comparison; not ranked."
    )
    quarantined: int = Field(
        description="How many nodes the operator took out of the ranks.", examples=[0]
    )
    waiting: list[NodeName] = Field(
        description="The first connected nodes that the season has not judged yet."
    )
