"""Test the home page: activity, score changes, shared rollouts and announcements."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season
from swarm_web.dashboard.models import Announcement
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Learned
from tests.factories import make_node, make_round, make_score, publish


def read(client: Client) -> str:
    return client.get("/").content.decode()


def archive(season: Season, author: Node, *, solved: int = 1) -> ArchivedRollout:
    """Archive a verified rollout of two completions, of which the second may be right."""
    now = timezone.now()
    return ArchivedRollout.objects.create(
        season=season,
        author=author,
        rollout=f"r{solved}",
        dataset="chain_sum",
        spec={},
        model="tiny",
        step=1,
        completions=[
            {"text": "<b>3</b>", "finish_reason": "stop", "solved": False},
            {"text": "it is 2", "finish_reason": "stop", "solved": bool(solved)},
        ],
        question="What is 1 + 1?",
        published_at=now,
        checked_at=now,
        solved=solved,
        total=2,
    )


def announce(text: str, *, begins: int = -1, ends: int = 1) -> Announcement:
    now = timezone.now()
    return Announcement.objects.create(
        text=text,
        starts_at=now + timedelta(hours=begins),
        ends_at=now + timedelta(hours=ends),
    )


def test_page_shows_connected_nodes_and_judged_questions(
    judged: list[Node], client: Client
) -> None:
    html = read(client)
    assert "<dt>Nodes connected</dt><dd>3</dd>" in html
    assert "96<small>in 24 hours</small>" in html


def test_significant_score_change_is_shown(client: Client, season: Season) -> None:
    nodes = [make_node(name)[0] for name in ("amber", "bold")]
    for solved in ((0, 8), (16, 9)):
        judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=16)
        for node, correct in zip(nodes, solved, strict=True):
            make_score(judge_round, node, correct=correct)
    publish(season)
    assert "Biggest change: " in read(client)
    assert ">amber</a>, +100.0 points" in read(client)


def test_insignificant_score_change_is_not_shown(judged: list[Node], client: Client) -> None:
    html = read(client)
    assert "No significant score changes in the last round." in html
    assert "Biggest change" not in html


def test_rollout_is_shown_with_its_verdict_and_learners(
    judged: list[Node], season: Season, client: Client
) -> None:
    rollout = archive(season, judged[0])
    Learned.objects.create(rollout=rollout, node=judged[1], at=timezone.now())
    ArchivedRollout.objects.update(learned_by=1)
    html = read(client)
    assert "What is 1 + 1?" in html
    assert "it is 2</pre>" in html
    assert "1 of 2 answers right" in html
    assert f'Learned from it: <a href="/nodes/{judged[1].name}/">' in html


def test_rollout_without_a_right_completion_is_marked_wrong_and_escaped(
    judged: list[Node], season: Season, client: Client
) -> None:
    archive(season, judged[0], solved=0)
    html = read(client)
    assert "&lt;b&gt;3&lt;/b&gt;</pre>" in html
    assert '<span class="mark wrong">' in html


def test_announcement_is_shown_escaped_between_its_start_and_end(db: None, client: Client) -> None:
    announce("over", begins=-2, ends=-1)
    announce("to come", begins=1, ends=2)
    assert '<aside class="announcement"' not in read(client)
    announce("<i>New season</i> on Monday")
    assert "&lt;i&gt;New season&lt;/i&gt; on Monday" in read(client)


def test_announcement_must_end_after_it_starts() -> None:
    now = timezone.now()
    with pytest.raises(ValidationError, match="end must be after"):
        Announcement(text="never", starts_at=now, ends_at=now).full_clean()
