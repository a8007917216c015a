"""The tasks that beat runs: from a node that goes silent to the message about it."""

import asyncio
import json
from datetime import timedelta
from importlib import import_module

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from judge.models import Round
from swarm_web.core.heartbeat import stamp_web
from swarm_web.core.store import sync_redis
from swarm_web.notifications import tasks
from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services.channels import send_test
from tests.factories import make_round, make_scores, make_season
from tests.notifications.conftest import make_channel, make_owned
from tests.notifications.receiver import Receiver


def watch_for(period: timedelta) -> None:
    """Let the watch have lasted for so long."""
    asyncio.run(stamp_web())
    now = timezone.now()
    sync_redis().set(
        "notifications:watch",
        json.dumps({"since": (now - period).isoformat(), "looked_at": now.isoformat()}),
    )


def test_a_node_that_goes_silent_is_told_to_its_owners_webhook(
    owner: User, receiver: Receiver
) -> None:
    make_channel(owner, Channel.Event.NODE_SILENT, target=receiver.url)
    node = make_owned(owner, last_seen=timezone.now() - timedelta(minutes=11))
    watch_for(timedelta(minutes=11))
    tasks.notice()
    tasks.deliver()
    got = json.loads(receiver.take().body)
    assert (got["type"], got["data"]["node"]) == ("node.silent", node.name)


def test_nobody_is_told_of_silence_after_an_outage_of_the_site(owner: User) -> None:
    make_channel(owner, Channel.Event.NODE_SILENT)
    make_owned(owner, last_seen=timezone.now() - timedelta(minutes=11))
    watch_for(timedelta(minutes=1))
    tasks.notice()
    assert not Delivery.objects.exists()


def test_the_operator_says_how_long_a_silence_is(owner: User, settings: Settings) -> None:
    settings.NOTIFICATION_SILENCE_MINUTES = 30
    make_channel(owner, Channel.Event.NODE_SILENT)
    make_owned(owner, last_seen=timezone.now() - timedelta(minutes=20))
    watch_for(timedelta(hours=1))
    tasks.notice()
    assert not Delivery.objects.exists()


def test_a_run_books_what_an_earlier_one_sent(
    owner: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = make_channel(owner, target=receiver.url)
    send_test(channel, now=timezone.now())
    monkeypatch.setattr(tasks, "COLLECT_TIMEOUT_S", 0.0)
    tasks.deliver()
    receiver.take()
    monkeypatch.setattr(tasks, "COLLECT_TIMEOUT_S", 5.0)
    tasks.deliver()
    assert Delivery.objects.get().state == Delivery.State.SENT


def test_each_task_of_the_schedule_exists(settings: Settings) -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        module, _, name = entry["task"].rpartition(".")
        assert getattr(import_module(module), name).name == entry["task"]


def test_a_round_with_many_owners_leaves_the_worker_to_others(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run ends when its time is over; the next one goes on where it stopped."""
    monkeypatch.setattr("swarm_web.notifications.services.noticing_rounds.BATCH", 1)
    monkeypatch.setattr(tasks, "NOTICING_BUDGET_S", 0.0)
    judge_round = make_round(make_season(), phase=Round.Phase.CLOSED, questions=16)
    Round.objects.filter(pk=judge_round.pk).update(closed_at=timezone.now())
    owners = [owner, User.objects.create_user("bob"), User.objects.create_user("eve")]
    make_scores(judge_round, dict.fromkeys(map(make_owned, owners), 8))
    for each in owners:
        make_channel(each, Channel.Event.ROUND_SCORED)
    told = []
    for _ in range(4):
        tasks.notice()
        told.append(Delivery.objects.count())
    assert told == [1, 2, 3, 3]
