"""Test that a delivery is repeated if SIGKILL ends the worker during it."""

import os
import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services.delivering import LEASE
from tests.notifications.conftest import make_channel
from tests.notifications.receiver import Receiver
from tests.notifications.test_delivering import deliver, put

WORKER = """
import django
django.setup()
from swarm_web.notifications import tasks
tasks.COLLECT_TIMEOUT_S = 60
tasks.deliver()
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_message_of_a_killed_worker_is_sent_again_with_the_same_id(
    owner: User, receiver: Receiver
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        hanging.settimeout(30)
        channel = make_channel(owner, target=f"http://127.0.0.1:{hanging.getsockname()[1]}/hook")
        delivery = put(channel, at=timezone.now())
        worker = subprocess.Popen([sys.executable, "-c", WORKER], env=worker_environment())
        connected, _ = hanging.accept()
        with connected:
            assert f"webhook-id: {delivery.pk}".encode() in connected.recv(65536)
            worker.kill()
            worker.wait()
    Channel.objects.filter(pk=channel.pk).update(target=receiver.url)
    assert deliver(timezone.now()) == []
    deliver(timezone.now() + LEASE + timedelta(seconds=1))
    assert receiver.take().headers["webhook-id"] == str(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (Delivery.State.SENT, 2)


def worker_environment() -> dict[str, str]:
    """Return the environment of a process that uses the test database."""
    url = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**connection.settings_dict)
    return os.environ | {"DATABASE_URL": url, "NOTIFICATION_PRIVATE_TARGETS": "true"}
