"""docs/notifications.md tells receivers what really arrives."""

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
    """Return the page's block of code in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    return str(found)


@pytest.fixture
def is_genuine() -> Check:
    """The page's own check of a signature."""
    names: dict[str, Check] = {}
    exec(block("python"), names)
    return names["is_genuine"]


@pytest.fixture
def arrived(owner: User, receiver: Receiver) -> tuple[str, Got]:
    """The secret of a channel, and a message that arrived through it just now."""
    channel = make_channel(owner, target=receiver.url)
    put(channel, at=timezone.now())
    deliver(timezone.now())
    return channel.secret, receiver.take()


def test_the_pages_check_accepts_what_arrives(arrived: tuple[str, Got], is_genuine: Check) -> None:
    secret, got = arrived
    assert is_genuine(secret, got.headers, got.body)


def test_the_pages_check_refuses_another_body(arrived: tuple[str, Got], is_genuine: Check) -> None:
    secret, got = arrived
    assert not is_genuine(secret, got.headers, got.body + b" ")


def test_the_pages_check_refuses_an_old_message(
    arrived: tuple[str, Got], is_genuine: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, got = arrived
    later = time.time() + 600
    monkeypatch.setattr(time, "time", lambda: later)
    assert not is_genuine(secret, got.headers, got.body)


def test_the_pages_example_has_the_fields_of_a_message(arrived: tuple[str, Got]) -> None:
    _, got = arrived
    example, message = json.loads(block("json")), json.loads(got.body)
    assert example.keys() == message.keys()
    assert example["data"].keys() == message["data"].keys()


@pytest.mark.parametrize("kind", Delivery.Type.values)
def test_each_type_of_message_is_described(kind: str) -> None:
    assert f"| `{kind}` |" in DOCS
