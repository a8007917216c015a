"""A node's page answers "is my node working?" with the first thing that stands in the way."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge.models import Round, Score
from swarm_web.dashboard.verdict import Verdict, judge_health
from swarm_web.nodes.models import Node

NOW = timezone.now()


def judge(
    node: Node | None = None,
    *,
    connected: bool = True,
    season_runs: bool = True,
    reason: str | None = "",
) -> Verdict:
    scores = [] if reason is None else [Score(round=Round(number=9), reason=reason)]
    node = node or Node(last_seen=NOW)
    return judge_health(
        node, connected=connected, season_runs=season_runs, scores=scores, ranked=True
    )


@pytest.mark.parametrize(
    ("verdict", "state", "words"),
    [
        (judge(), "good", "is healthy"),
        (judge(Node(blocked=True)), "bad", "is blocked"),
        (judge(Node(), connected=False), "waiting", "has not connected yet"),
        (judge(connected=False), "bad", "without a goodbye"),
        (
            judge(Node(last_seen=NOW, left_at=NOW + timedelta(seconds=1)), connected=False),
            "bad",
            "said goodbye",
        ),
        (judge(season_runs=False), "waiting", "trains alone"),
        (judge(reason=None), "waiting", "waits for its first round"),
        (judge(reason="not_offered"), "bad", "missed round 9"),
        (judge(reason="unanswered"), "bad", "too slowly"),
        (judge(reason="unscored"), "good", "could not be verified"),
    ],
)
def test_the_verdict_names_state_and_reason(verdict: Verdict, state: str, words: str) -> None:
    assert verdict.state == state
    assert words in f"{verdict.text} {verdict.reason}"
