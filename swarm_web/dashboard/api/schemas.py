"""What the read API answers with, and its OpenAPI document describes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema

Interval = tuple[float, float]
# Dataset -> (correct, n).
Cells = dict[str, tuple[int, int]]


class Problem(Schema):
    """Why a request was refused, and what helps; `code` is stable."""

    code: str
    message: str
    fix: str


class BaseItem(Schema):
    """A line of the leaderboard: macro pass@1 over the window, and `cells` per dataset."""

    rank: tuple[int, int] | None
    remark: str
    node: str
    model: str
    parameters: int
    arm: str
    score: float
    interval: Interval
    n: int
    rounds: int
    cells: Cells
    external_used: int
    last_seen: datetime | None
    connected: bool


class LeaderboardItem(BaseItem):
    """One trained node; nodes that cannot be told apart share ranks.

    `rank` is null while `remark` says why the node is not ranked. `over_base` is the score minus
    that of the same model untrained, null where none was judged.
    """

    over_base: float | None
    over_base_interval: Interval | None


class LeaderboardOut(Schema):
    """A season's leaderboard.

    `base` are untrained models, not ranked; of quarantined nodes only the number is told;
    `waiting` are connected nodes that were not judged in the window yet.
    """

    season: str
    window: str
    as_of: datetime
    items: list[LeaderboardItem]
    base: list[BaseItem]
    quarantined: int
    waiting: list[str]


class AssignmentOut(Schema):
    """For how many of a season's nodes a coin chose the arm; only then it is a cause."""

    coin: int
    nodes: int
    random: bool
    words: str


class MissingOut(Schema):
    """What a model lacks for a test."""

    swarm_nodes: int
    isolated_nodes: int
    rounds: int


class ClaimOut(Schema):
    """What a season says about one model; differences are swarm - isolated, as fractions.

    `verdict` is swarm_better, isolated_better, not_shown or too_few; null figures were not tested.
    """

    model: str
    n_swarm: int
    n_isolated: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    verdict: str
    words: str
    missing: MissingOut | None
    missing_words: str
    updated_at: datetime


class SeasonsOut(Schema):
    """What all ended seasons that assigned arms by coin say about a model; a season is one unit."""

    model: str
    n_seasons: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    verdict: str
    missing_seasons: int
    words: str


class CompareOut(Schema):
    """The judge's claims about the arms; not `final` while the season runs."""

    season: str
    final: bool
    method: str
    assignment: AssignmentOut
    tested: int
    items: list[ClaimOut]
    seasons_method: str
    seasons: list[SeasonsOut]


class RulingOut(Schema):
    """What the operator decided, why, and what it changed."""

    action: str
    text: str
    reason: str
    changes: dict[str, int]
    made_at: datetime


class RoundOut(Schema):
    """A round and its phase: scheduled, open, scoring, closed or void.

    `commitment` is the SHA-256 of the round's secret and rules, published before it opens.
    """

    number: int
    season: str
    phase: str
    opens_at: datetime
    closes_at: datetime
    closed_at: datetime | None
    commitment: str
    void_reason: str


class RoundsOut(Schema):
    """Rounds, newest first; `next_before` asks for the page after."""

    items: list[RoundOut]
    next_before: int | None


class ScoreOut(Schema):
    """A node's result in one round; without a score when it was absent."""

    round: int
    node: str
    model: str
    arm: str
    status: str
    reason: str
    advice: str
    score: float | None
    interval: Interval | None
    correct: int
    n: int
    cells: Cells


class QuestionOut(Schema):
    """A revealed question: its spec makes it again on any machine."""

    id: UUID
    position: int
    dataset: str
    prompt: str
    spec: dict[str, Any]
    solved: int
    seated: int


class RoundDetail(RoundOut):
    """A round; scores and questions are empty, secret and rules null, until it has closed.

    `secret` is hexadecimal. A void round keeps what had been revealed, and has no scores.
    """

    question_count: int
    seats: int
    completed: int
    rulings: list[RulingOut]
    secret: str | None
    rules: dict[str, Any] | None
    scores: list[ScoreOut]
    questions: list[QuestionOut]


class VerdictOut(Schema):
    """Whether the node works, and why."""

    state: str
    text: str
    reason: str


class CellOut(Schema):
    """A node's share in one dataset, with its Wilson interval at 95 %."""

    correct: int
    n: int
    share: float
    interval: Interval


class NodeOut(Schema):
    """A node: judge score, training reward and participation are three different numbers."""

    node: str
    model: str
    parameters: int
    arm: str
    connected: bool
    last_seen: datetime | None
    verdict: VerdictOut
    season: str | None
    rank: tuple[int, int] | None
    remark: str
    of: int
    score: float | None
    interval: Interval | None
    n: int
    rounds: int
    cells: dict[str, CellOut]
    over_base: float | None
    over_base_interval: Interval | None
    rulings: list[RulingOut]
    step: int
    training_reward: float | None
    informative_share: float | None
    published: int
    rejected: int
    delivered: int
    delivered_to_others: int | None
    local_used: int
    external_used: int
    external_dropped: dict[str, int]
    scores: list[ScoreOut]
