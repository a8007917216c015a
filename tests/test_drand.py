"""Values of the public beacon are fetched from real servers on this machine, good and bad."""

from time import monotonic
from typing import Any

import pytest

from swarm_tasks.beacon import MAX_VALUE_BYTES, QUICKNET, Beacon
from swarm_web.core import drand
from tests.drand import NOBODY, Answer, hang, honest, running, value_of

BEACON = Beacon(QUICKNET, 1000)


def test_the_value_is_fetched(settings: Any) -> None:
    with running() as server:
        settings.BEACON_URLS = [server.url + "/"]
        assert drand.fetch_beacon(BEACON) == value_of(1000)
        assert server.asked == [1000]


def test_one_good_server_is_enough_and_one_that_hangs_costs_no_time(
    settings: Any,
) -> None:
    with running(hang) as hanging, running() as server:
        settings.BEACON_URLS = [NOBODY, hanging.url, server.url]
        began = monotonic()
        assert drand.fetch_beacon(BEACON) == value_of(1000)
        assert monotonic() - began < drand.TIMEOUT_S / 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda number: b"", "HTTP Error 425"),
        (lambda number: b"<html>", "no value of a beacon"),
        (lambda number: honest(number + 1), "round 1001 of the beacon instead of 1000"),
        (lambda number: honest(number).replace(b'"signature":"', b'"signature":"00'), "SHA-256"),
        (lambda number: b"{" + b" " * MAX_VALUE_BYTES + honest(number)[1:], "no value of a beacon"),
    ],
)
def test_a_bad_answer_is_no_value_and_the_log_says_why(
    settings: Any, caplog: pytest.LogCaptureFixture, answer: Answer, told: str
) -> None:
    with running(answer) as server:
        settings.BEACON_URLS = [server.url]
        assert drand.fetch_beacon(BEACON) is None
    assert told in caplog.text


def test_servers_that_all_hang_are_given_up(
    settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drand, "TIMEOUT_S", 0.1)
    with running(hang) as server:
        settings.BEACON_URLS = [server.url, server.url]
        assert drand.fetch_beacon(BEACON) is None
    assert "nothing within 0.1 s" in caplog.text


def test_a_server_that_still_hangs_is_not_asked_again(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request costs a thread, and one that sends a byte now and then holds it for long."""
    with running(hang) as hanging, running() as server:
        settings.BEACON_URLS = [hanging.url, server.url]
        for number in (1000, 1001, 1002):
            assert drand.fetch_beacon(Beacon(QUICKNET, number)) == value_of(number)
        settings.BEACON_URLS = [hanging.url]
        assert drand.fetch_beacon(BEACON) is None
        assert "still hangs" in caplog.text
        assert len(hanging.asked) <= 1


def test_without_servers_there_is_no_value(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.BEACON_URLS = []
    assert drand.fetch_beacon(BEACON) is None
    assert "no servers are set" in caplog.text
