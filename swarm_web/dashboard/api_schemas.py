"""What the read API answers with, and its OpenAPI document describes."""

from datetime import datetime
from typing import Any

from ninja import Schema

Interval = tuple[float, float]


class Problem(Schema):
    """Why a request was refused, and what helps; `code` is stable."""

    code: str
    message: str
    fix: str


class LeaderboardItem(Schema):
    """One node's judge score over the window; nodes that cannot be told apart share ranks."""

    rank: tuple[int, int]
    node: str
    model: str
    parameters: int
    arm: str
    score: float
    interval: Interval
    n: int
    rounds: int
    external_used: int
    last_seen: datetime | None
    connected: bool


class LeaderboardOut(Schema):
    """A season's leaderboard; `waiting` are connected nodes that were not judged in it yet."""

    season: str
    window: str
    as_of: datetime
    items: list[LeaderboardItem]
    waiting: list[str]


class RoundOut(Schema):
    """A round and its phase: scheduled, open, scoring, closed or void."""

    number: int
    season: str
    phase: str
    opens_at: datetime
    closes_at: datetime
    closed_at: datetime | None


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
    score: float | None
    interval: Interval | None
    n: int


class QuestionOut(Schema):
    """A revealed question: its spec makes it again on any machine."""

    position: int
    dataset: str
    prompt: str
    spec: dict[str, Any]
    solved: int
    seated: int


class RoundDetail(RoundOut):
    """A round; scores and questions are empty until it has closed."""

    question_count: int
    seats: int
    completed: int
    scores: list[ScoreOut]
    questions: list[QuestionOut]


class VerdictOut(Schema):
    """Whether the node works, and why."""

    state: str
    text: str
    reason: str


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
    of: int
    score: float | None
    interval: Interval | None
    n: int
    rounds: int
    step: int
    training_reward: float | None
    informative_share: float | None
    published: int
    rejected: int
    delivered: int
    local_used: int
    external_used: int
    external_dropped: dict[str, int]
    scores: list[ScoreOut]
