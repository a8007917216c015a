"""Test fetching values of the public beacon from real servers on this machine."""

from time import monotonic
from typing import Any

import pytest

from swarm_tasks.beacon import MAX_VALUE_BYTES, QUICKNET, Beacon
from swarm_web.core import drand
from tests.drand import NOBODY, Answer, hang, honest, running, value_of

BEACON = Beacon(QUICKNET, 1000)


def test_value_is_fetched(settings: Any) -> None:
    with running() as server:
        settings.BEACON_URLS = [server.url + "/"]
        assert drand.fetch_beacon(BEACON) == value_of(1000)
        assert server.asked == [1000]


def test_value_is_fetched_without_waiting_for_a_hanging_server(
    settings: Any,
) -> None:
    with running(hang) as hanging, running() as server:
        settings.BEACON_URLS = [NOBODY, hanging.url, server.url]
        began = monotonic()
        assert drand.fetch_beacon(BEACON) == value_of(1000)
        assert monotonic() - began < drand.TIMEOUT_S / 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda number: b"", "HTTP Error 425"),
        (lambda number: b"<html>", "no value of a beacon"),
        (lambda number: honest(number + 1), "round 1001 of the beacon instead of 1000"),
        (lambda number: honest(number).replace(b'"signature":"', b'"signature":"00'), "SHA-256"),
        (lambda number: b"{" + b" " * MAX_VALUE_BYTES + honest(number)[1:], "no value of a beacon"),
    ],
)
def test_invalid_response_is_rejected_and_the_reason_logged(
    settings: Any, caplog: pytest.LogCaptureFixture, answer: Answer, reason: str
) -> None:
    with running(answer) as server:
        settings.BEACON_URLS = [server.url]
        assert drand.fetch_beacon(BEACON) is None
    assert reason in caplog.text


def test_hanging_servers_time_out(
    settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drand, "TIMEOUT_S", 0.1)
    with running(hang) as server:
        settings.BEACON_URLS = [server.url, server.url]
        assert drand.fetch_beacon(BEACON) is None
    assert "nothing within 0.1 s" in caplog.text


def test_server_with_a_hanging_request_gets_no_other_request(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request uses a thread, and a server that sends bytes slowly blocks it for long."""
    with running(hang) as hanging, running() as server:
        settings.BEACON_URLS = [hanging.url, server.url]
        for number in (1000, 1001, 1002):
            assert drand.fetch_beacon(Beacon(QUICKNET, number)) == value_of(number)
        settings.BEACON_URLS = [hanging.url]
        assert drand.fetch_beacon(BEACON) is None
        assert "still hangs" in caplog.text
        assert len(hanging.asked) <= 1


def test_no_servers_give_no_value(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.BEACON_URLS = []
    assert drand.fetch_beacon(BEACON) is None
    assert "no servers are set" in caplog.text
