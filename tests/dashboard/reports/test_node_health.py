"""Test the verdict of a node's page: its state and the first problem that explains it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from judge.models import Round, Score
from swarm_web.dashboard.reports.node_health import NodeHealth, SeatStatus, judge_health
from swarm_web.nodes.models import Node
from tests.dashboard.board_rows import make_row

NOW = timezone.now()


def judge(
    node: Node | None = None,
    *,
    connected: bool = True,
    season_runs: bool = True,
    reason: str | None = "",
    remark: str = "",
    seat: SeatStatus | None = None,
) -> NodeHealth:
    scores = [] if reason is None else [Score(round=Round(number=9), reason=reason)]
    node = node or Node(last_seen=NOW)
    return judge_health(
        node,
        connected=connected,
        season_runs=season_runs,
        scores=scores,
        row=replace(make_row("amber", n=12), remark=remark),
        minimum=16,
        seat=seat,
    )


def sit(**fields: Any) -> SeatStatus:
    """Return a seat in the open round 10, with 3 of 16 questions answered."""
    answering = SeatStatus(
        number=10,
        is_open=True,
        offered=True,
        came_late=False,
        answered=3,
        questions=16,
        half_over=False,
    )
    return replace(answering, **fields)


LEFT: dict[str, Any] = {"last_seen": NOW, "left_at": NOW + timedelta(seconds=1)}
IDLE = sit(offered=False, answered=0)
LATE = sit(offered=False, answered=0, came_late=True)
STUCK = sit(offered=False, answered=0, half_over=True)
MISSED = sit(offered=False, answered=0, half_over=True, is_open=False)


@pytest.mark.parametrize(
    ("verdict", "state", "words"),
    [
        (judge(), "good", "is healthy"),
        (judge(Node(blocked=True)), "bad", "is blocked"),
        (judge(Node(), connected=False), "waiting", "has not connected yet"),
        (judge(connected=False), "bad", "heartbeat stopped"),
        (judge(Node(**LEFT, said_goodbye=True), connected=False), "bad", "disconnected normally"),
        (judge(Node(**LEFT), connected=False), "bad", "connection was lost"),
        (judge(season_runs=False), "waiting", "training alone"),
        (judge(reason=None), "waiting", "waiting for its first round"),
        (judge(reason="not_offered"), "bad", "missed round 9"),
        (judge(reason="unanswered"), "bad", "too slowly"),
        (judge(reason="unscored"), "good", "could not be graded"),
        (judge(reason="came_late"), "waiting", "waiting for its next round"),
        (judge(remark="too_few"), "good", "requires 16 questions; 12 count"),
        (judge(remark="base"), "good", "an untrained model, shown for comparison"),
        (judge(Node(last_seen=NOW, quarantined=True)), "bad", "contact the operator"),
        (judge(Node(quarantined=True), connected=False), "bad", "removed it from the ranking"),
        (judge(seat=sit()), "good", "answered 3 of 16 questions of round 10"),
        (judge(seat=IDLE), "good", "not requested the questions of round 10 yet"),
        (judge(seat=STUCK), "waiting", "has not requested round 10 yet"),
        (judge(seat=MISSED), "bad", "missed round 10"),
        (judge(seat=LATE), "waiting", "joined after round 10 opened"),
        (judge(reason="not_offered", seat=STUCK), "bad", "missed round 9"),
        (judge(reason="unanswered", seat=sit()), "bad", "answered 3 of 16 questions of round 10"),
        (judge(connected=False, seat=STUCK), "bad", "is offline"),
        (judge(reason=None, seat=sit()), "good", "answering its first round. It has answered 3 of"),
        (
            judge(reason=None, seat=IDLE),
            "waiting",
            "waiting for its first round. It has not requested",
        ),
        (judge(reason=None, seat=STUCK), "waiting", "has not requested round 10 yet"),
        (judge(reason=None, seat=MISSED), "bad", "missed round 10"),
        (judge(reason=None, seat=LATE), "waiting", "joined after round 10 opened"),
    ],
)
def test_verdict_has_state_and_reason(verdict: NodeHealth, state: str, words: str) -> None:
    assert verdict.state == state
    assert words in f"{verdict.text} {verdict.reason}"
