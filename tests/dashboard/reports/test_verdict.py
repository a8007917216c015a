"""A node's page answers "is my node working?" with the first thing that stands in the way."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge.models import Round, Score
from swarm_web.dashboard.reports.verdict import Place, Verdict, judge_health
from swarm_web.nodes.models import Node

NOW = timezone.now()


def judge(
    node: Node | None = None,
    *,
    connected: bool = True,
    season_runs: bool = True,
    reason: str | None = "",
    remark: str = "",
) -> Verdict:
    scores = [] if reason is None else [Score(round=Round(number=9), reason=reason)]
    node = node or Node(last_seen=NOW)
    place = Place(remark=remark, n=12, minimum=16)
    return judge_health(
        node, connected=connected, season_runs=season_runs, scores=scores, place=place
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
        (judge(reason="came_late"), "waiting", "waits for its next round"),
        (judge(remark="too_few"), "good", "needs 16 questions and 12 count"),
        (judge(remark="base"), "good", "an untrained model, shown for comparison"),
        (judge(Node(last_seen=NOW, quarantined=True)), "bad", "contact the operator"),
        (judge(Node(quarantined=True), connected=False), "bad", "out of the ranks"),
    ],
)
def test_the_verdict_names_state_and_reason(verdict: Verdict, state: str, words: str) -> None:
    assert verdict.state == state
    assert words in f"{verdict.text} {verdict.reason}"
