"""Test when a node counts as silent, when a message is retried, and when a channel is given up."""

from datetime import UTC, datetime, timedelta

import pytest

from swarm_web.notifications.rules import (
    MAX_ATTEMPTS,
    Watch,
    continue_watch,
    is_outdated,
    pause_after,
    should_give_up,
    silent_before,
)

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
AGO = timedelta(hours=1)
SERVING = timedelta(seconds=1)
PATIENCE = timedelta(minutes=10)


def test_watch_continues_while_the_site_is_serving() -> None:
    watch = Watch(since=NOW - AGO, looked_at=NOW - timedelta(seconds=15))
    assert continue_watch(watch, now=NOW, web_silence=SERVING) == Watch(NOW - AGO, NOW)


@pytest.mark.parametrize(
    ("looked_ago", "web_silence"),
    [
        pytest.param(15, timedelta(seconds=16), id="no web process is serving"),
        pytest.param(15, None, id="unknown whether a web process is serving"),
        pytest.param(61, SERVING, id="last look a minute ago"),
    ],
)
def test_watch_restarts_after_an_outage(looked_ago: int, web_silence: timedelta | None) -> None:
    watch = Watch(since=NOW - AGO, looked_at=NOW - timedelta(seconds=looked_ago))
    assert continue_watch(watch, now=NOW, web_silence=web_silence).since == NOW


def test_first_look_starts_a_watch() -> None:
    assert continue_watch(None, now=NOW, web_silence=SERVING) == Watch(NOW, NOW)


def test_nodes_unseen_for_the_patience_are_silent() -> None:
    watch = Watch(since=NOW - AGO, looked_at=NOW)
    assert silent_before(watch, now=NOW, threshold=PATIENCE) == NOW - PATIENCE


def test_no_node_is_silent_in_a_watch_shorter_than_the_patience() -> None:
    watch = Watch(since=NOW - timedelta(minutes=9), looked_at=NOW)
    assert silent_before(watch, now=NOW, threshold=PATIENCE) is None


def test_pauses_grow_from_half_a_minute_to_hours() -> None:
    pauses = [pause_after(attempts).total_seconds() for attempts in range(1, MAX_ATTEMPTS)]
    assert pauses == [30, 120, 480, 1920, 7680, 30720]


def test_pause_is_at_most_nine_hours() -> None:
    assert pause_after(1000) < timedelta(hours=9)


@pytest.mark.parametrize(
    ("failures", "days", "expected"), [(10, 3, True), (9, 30, False), (1000, 2, False)]
)
def test_channel_is_given_up_after_many_failures_over_days(
    failures: int, days: int, expected: bool
) -> None:
    since = NOW - timedelta(days=days)
    assert should_give_up(failures=failures, failing_since=since, now=NOW) is expected


def test_versions_are_compared_numerically() -> None:
    versions = ("0.9.0", "0.10.0", "1.0.0")
    assert [is_outdated(each, minimum="0.10.0") for each in versions] == [True, False, False]


def test_invalid_version_is_not_outdated() -> None:
    assert not is_outdated("nightly", minimum="9.0.0")
    assert not is_outdated("1.2", minimum="9.0.0")
