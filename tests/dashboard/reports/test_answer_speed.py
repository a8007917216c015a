"""Test how fast a node answers, compared with its training, and when that is suspicious."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Answer, Round, Season
from swarm_web.dashboard.reports.node import AnswerSpeed, read_report
from swarm_web.nodes.models import Node
from swarm_web.relay.models import TrainingPoint
from tests.factories import make_answer, make_node, make_round, make_scores, make_seat, publish

NOW = timezone.now()


@pytest.fixture
def amber(season: Season) -> Node:
    """A node that answered a round of 16 questions."""
    node, _ = make_node("amber", last_seen=NOW)
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=16)
    make_seat(judge_round, node)
    for question in judge_round.questions.all():
        make_answer(question, node, solved=True)
    make_scores(judge_round, {node: 16})
    publish(season)
    return node


def train(node: Node, season: Season, *, steps: int, seconds: float) -> None:
    """Let a node report training steps of 64 completions each over a time."""
    Season.objects.filter(pk=season.pk).update(batch=8, completions=8)
    for step, at in ((10, NOW - timedelta(seconds=seconds)), (10 + steps, NOW)):
        TrainingPoint.objects.create(
            node=node, season=season, at=at, step=step, training_reward=0, informative_share=0
        )


def speed_of(node: Node, *, milliseconds: int) -> AnswerSpeed:
    """Return the speed if the last of the node's answers took `milliseconds`."""
    Answer.objects.update(latency_ms=milliseconds // 2)
    Answer.objects.filter(question__position=7).update(latency_ms=milliseconds)
    speed = read_report(node, now=NOW).speed
    assert speed is not None
    return speed


def test_last_answer_determines_the_time(amber: Node) -> None:
    speed = speed_of(amber, milliseconds=800)
    assert (speed.answers, speed.milliseconds, speed.ratio) == (16, 800, None)


# 64 completions in 10 s are 6.4 per second.
@pytest.mark.parametrize(
    ("milliseconds", "ratio", "suspicious"), [(2500, 1, False), (26, 96, False), (10, 250, True)]
)
def test_speed_is_compared_with_training(
    season: Season, amber: Node, milliseconds: int, ratio: float, suspicious: bool
) -> None:
    train(amber, season, steps=6, seconds=60)
    speed = speed_of(amber, milliseconds=milliseconds)
    assert speed.training == 6.4
    assert speed.ratio == pytest.approx(ratio, rel=0.01)
    assert speed.is_suspicious is suspicious


@pytest.mark.parametrize(("steps", "seconds"), [(0, 60), (-5, 60), (6, 0)])
def test_no_ratio_without_progress_in_training(
    season: Season, amber: Node, steps: int, seconds: float
) -> None:
    train(amber, season, steps=steps, seconds=seconds)
    assert speed_of(amber, milliseconds=10).ratio is None


def test_node_without_answers_has_no_speed(season: Season, amber: Node) -> None:
    Answer.objects.all().delete()
    assert read_report(amber, now=NOW).speed is None


def test_page_and_api_show_the_ratio(season: Season, amber: Node, client: Client) -> None:
    train(amber, season, steps=6, seconds=60)
    speed_of(amber, milliseconds=10)
    html = client.get("/nodes/amber/").content.decode()
    assert "250 times as fast as in training" in html
    speed = client.get("/api/v1/nodes/amber").json()["speed"]
    assert (speed["is_suspicious"], speed["ratio"]) == (True, 250)
