"""Test the periodic tasks, from a silent node to the delivered message."""

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
    """Let the watch have lasted for a period."""
    asyncio.run(stamp_web())
    now = timezone.now()
    sync_redis().set(
        "notifications:watch",
        json.dumps({"since": (now - period).isoformat(), "looked_at": now.isoformat()}),
    )


def test_silent_node_is_delivered_to_the_webhook_of_its_owner(
    owner: User, receiver: Receiver
) -> None:
    make_channel(owner, Channel.Event.NODE_SILENT, target=receiver.url)
    node = make_owned(owner, last_seen=timezone.now() - timedelta(minutes=11))
    watch_for(timedelta(minutes=11))
    tasks.notice()
    tasks.deliver()
    got = json.loads(receiver.take().body)
    assert (got["type"], got["data"]["node"]) == ("node.silent", node.name)


def test_no_silence_is_notified_shortly_after_an_outage_of_the_site(owner: User) -> None:
    make_channel(owner, Channel.Event.NODE_SILENT)
    make_owned(owner, last_seen=timezone.now() - timedelta(minutes=11))
    watch_for(timedelta(minutes=1))
    tasks.notice()
    assert not Delivery.objects.exists()


def test_operator_can_set_the_minutes_of_silence(owner: User, settings: Settings) -> None:
    settings.NOTIFICATION_SILENCE_MINUTES = 30
    make_channel(owner, Channel.Event.NODE_SILENT)
    make_owned(owner, last_seen=timezone.now() - timedelta(minutes=20))
    watch_for(timedelta(hours=1))
    tasks.notice()
    assert not Delivery.objects.exists()


def test_run_records_the_outcomes_of_an_earlier_run(
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


def test_each_scheduled_task_exists(settings: Settings) -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        module, _, name = entry["task"].rpartition(".")
        assert getattr(import_module(module), name).name == entry["task"]


def test_run_stops_after_its_time_and_the_next_one_continues(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round with many owners must not occupy the worker."""
    monkeypatch.setattr("swarm_web.notifications.services.noticing_rounds.BATCH", 1)
    monkeypatch.setattr(tasks, "NOTICING_BUDGET_S", 0.0)
    judge_round = make_round(make_season(), phase=Round.Phase.CLOSED, questions=16)
    Round.objects.filter(pk=judge_round.pk).update(closed_at=timezone.now())
    owners = [owner, User.objects.create_user("bob"), User.objects.create_user("eve")]
    make_scores(judge_round, dict.fromkeys(map(make_owned, owners), 8))
    for each in owners:
        make_channel(each, Channel.Event.ROUND_SCORED)
    counts = []
    for _ in range(4):
        tasks.notice()
        counts.append(Delivery.objects.count())
    assert counts == [1, 2, 3, 3]
