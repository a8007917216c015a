"""Test notices about scored rounds: each channel gets one message for all nodes of its owner."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Round
from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services import noticing_rounds
from swarm_web.notifications.services.noticing_rounds import notice_rounds
from tests.factories import make_node, make_round, make_scores, make_season
from tests.notifications.conftest import NOW, make_channel, make_owned

SCORED = Channel.Event.ROUND_SCORED


@pytest.fixture
def closed(owner: User) -> Round:
    """A round that closed a minute ago, with a node of the owner and an anonymous one."""
    return close_round(make_owned(owner), make_node()[0], at=NOW - timedelta(minutes=1))


def close_round(*nodes: Node, at: datetime) -> Round:
    judge_round = make_round(make_season(), phase=Round.Phase.CLOSED, questions=16)
    Round.objects.filter(pk=judge_round.pk).update(closed_at=at)
    make_scores(judge_round, dict.fromkeys(nodes, 8))
    judge_round.refresh_from_db()
    return judge_round


def notice(now: datetime = NOW) -> None:
    assert 0 in [notice_rounds(now=now) for _ in range(4)]


def test_owner_is_notified_of_the_scores_of_own_nodes(owner: User, closed: Round) -> None:
    make_channel(owner, SCORED)
    notice()
    (delivery,) = Delivery.objects.all()
    node = owner.node_set.get()
    assert delivery.data["round"] == closed.number
    assert delivery.data["season"] == closed.season.name
    assert delivery.data["url"] == f"http://localhost:8000/rounds/{closed.number}/"
    (scored,) = delivery.data["nodes"]
    assert (scored["node"], scored["score"], scored["n"]) == (node.name, 0.5, 16)
    assert 0 < scored["interval"][0] < 0.5 < scored["interval"][1] < 1


def test_round_is_notified_once(owner: User, closed: Round) -> None:
    make_channel(owner, SCORED)
    notice()
    notice()
    assert Delivery.objects.count() == 1


def test_notified_round_costs_one_query(owner: User, closed: Round) -> None:
    make_channel(owner, SCORED)
    notice()
    with CaptureQueriesContext(connection) as queries:
        assert notice_rounds(now=NOW) == 0
    assert len(queries) == 1


def test_owner_without_a_node_in_the_round_is_not_notified(closed: Round) -> None:
    make_channel(User.objects.create_user("bob"), SCORED)
    notice()
    assert not Delivery.objects.exists()


def test_round_that_closed_before_the_channel_was_created_is_not_notified(
    owner: User, closed: Round
) -> None:
    make_channel(owner, SCORED, since=NOW)
    notice()
    assert not Delivery.objects.exists()


def test_round_that_closed_hours_ago_is_not_notified(owner: User, closed: Round) -> None:
    make_channel(owner, SCORED)
    notice(NOW + timedelta(hours=2))
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Channel.Kind.WEBHOOK, 2), (Channel.Kind.NTFY, 1), (Channel.Kind.EMAIL, 1)],
)
def test_mail_and_ntfy_get_one_round_per_hour_and_webhooks_every_round(
    owner: User, closed: Round, kind: str, expected: int
) -> None:
    make_channel(owner, SCORED, kind=kind)
    notice()
    close_next(closed, owner, at=NOW)
    notice()
    assert Delivery.objects.count() == expected


def test_webhook_gets_a_round_that_closed_before_the_last_reported_one(
    owner: User, closed: Round
) -> None:
    make_channel(owner, SCORED)
    notice()
    close_next(closed, owner, at=NOW - timedelta(minutes=2))
    notice()
    assert Delivery.objects.count() == 2


def test_mail_gets_another_round_after_an_hour(owner: User, closed: Round) -> None:
    make_channel(owner, SCORED, kind=Channel.Kind.EMAIL)
    notice()
    later = NOW + timedelta(hours=1)
    close_next(closed, owner, at=later)
    notice(later)
    assert Delivery.objects.count() == 2


def close_next(before: Round, owner: User, *, at: datetime) -> None:
    following = make_round(before.season, phase=Round.Phase.CLOSED, questions=16)
    Round.objects.filter(pk=following.pk).update(closed_at=at)
    make_scores(following, dict.fromkeys(owner.node_set.all(), 8))


def test_owners_are_notified_in_batches_and_only_once(
    owner: User, closed: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticing_rounds, "BATCH", 2)
    owners = [owner, *(User.objects.create_user(f"owner{n}") for n in range(4))]
    make_scores(closed, dict.fromkeys(map(make_owned, owners[1:]), 4))
    channels = {make_channel(each, SCORED).pk for each in owners}
    assert [notice_rounds(now=NOW) for _ in range(4)] == [2, 2, 1, 0]
    assert set(Delivery.objects.values_list("channel", flat=True)) == channels
    assert Delivery.objects.count() == len(owners)


def test_next_worker_continues_after_the_last_complete_batch(
    owner: User, closed: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticing_rounds, "BATCH", 1)
    for number in range(3):
        make_channel(owner, SCORED, target=f"http://127.0.0.1:9/{number}")
    notice_rounds(now=NOW)
    assert Delivery.objects.count() == 1
    notice()
    assert Delivery.objects.count() == 3
