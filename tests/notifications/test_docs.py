"""Test that docs/notifications.md describes the messages that receivers get."""

import json
import re
import time
from collections.abc import Callable

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from swarm_web.notifications.models import Delivery
from tests.notifications.conftest import make_channel
from tests.notifications.receiver import Got, Receiver
from tests.notifications.test_delivering import deliver, put

DOCS = (settings.BASE_DIR / "docs" / "notifications.md").read_text()

Check = Callable[[str, dict[str, str], bytes], bool]


def block(language: str) -> str:
    """Return the code block of the page in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    return str(found)


@pytest.fixture
def is_genuine() -> Check:
    """The page's function that checks a signature."""
    names: dict[str, Check] = {}
    exec(block("python"), names)
    return names["is_genuine"]


@pytest.fixture
def received(owner: User, receiver: Receiver) -> tuple[str, Got]:
    """The secret of a channel, and a message that was just received through it."""
    channel = make_channel(owner, target=receiver.url)
    put(channel, at=timezone.now())
    deliver(timezone.now())
    return channel.secret, receiver.take()


def test_documented_check_accepts_a_received_message(
    received: tuple[str, Got], is_genuine: Check
) -> None:
    secret, got = received
    assert is_genuine(secret, got.headers, got.body)


def test_documented_check_rejects_a_changed_body(
    received: tuple[str, Got], is_genuine: Check
) -> None:
    secret, got = received
    assert not is_genuine(secret, got.headers, got.body + b" ")


def test_documented_check_rejects_an_old_message(
    received: tuple[str, Got], is_genuine: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, got = received
    later = time.time() + 600
    monkeypatch.setattr(time, "time", lambda: later)
    assert not is_genuine(secret, got.headers, got.body)


def test_documented_example_has_the_fields_of_a_message(received: tuple[str, Got]) -> None:
    _, got = received
    example, message = json.loads(block("json")), json.loads(got.body)
    assert example.keys() == message.keys()
    assert example["data"].keys() == message["data"].keys()


@pytest.mark.parametrize("kind", Delivery.Type.values)
def test_each_message_type_is_documented(kind: str) -> None:
    assert f"| `{kind}` |" in DOCS
