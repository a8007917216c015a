"""How long a node that lost its coordinator may wait before it reconnects."""

from datetime import UTC, datetime, timedelta

import pytest

from node_client.swarm.connection import ReconnectLimit
from swarm_protocol.messages import RoundInfo, RoundPhase, RoundState, ServerMessage, Welcome
from swarm_protocol.returning import HURRY_S, MAX_PAUSE_S, RETURN_WITHIN_S, SOON_S
from swarm_protocol.version import PROTOCOL_VERSION

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def a_round(phase: RoundPhase, *, opens_in_s: float = 0) -> RoundInfo:
    opens_at = EPOCH + timedelta(seconds=opens_in_s)
    closes_at = opens_at + timedelta(seconds=40)
    return RoundInfo(1, phase, opens_at.isoformat(), closes_at.isoformat(), 16, "")


def doorbell(current: RoundInfo | None) -> RoundState:
    return RoundState(None, current, EPOCH.isoformat())


def welcome(current: RoundInfo | None, *, return_within: float = RETURN_WITHIN_S) -> Welcome:
    return Welcome(
        reply_to="1",
        protocol=PROTOCOL_VERSION,
        server="site",
        node="amber",
        arm="swarm",
        now=EPOCH.isoformat(),
        season=None,
        round=current,
        return_within=return_within,
    )


def max_pause(*received: ServerMessage, lost_at: float = 100, now: float = 100) -> float:
    """Return the longest pause allowed after messages that arrived at time 100."""
    urgency = ReconnectLimit()
    for message in received:
        urgency.update(message, at=100)
    return urgency.max_pause(lost_at=lost_at, now=now)


@pytest.mark.parametrize("phase", ["open", "scoring"])
def test_node_returns_within_seconds_during_a_round(phase: RoundPhase) -> None:
    assert max_pause(welcome(a_round(phase))) == RETURN_WITHIN_S
    assert max_pause(doorbell(a_round(phase))) == RETURN_WITHIN_S


def test_open_round_stays_urgent_after_its_announced_deadline() -> None:
    assert max_pause(doorbell(a_round("open")), now=100 + HURRY_S - 1) == RETURN_WITHIN_S


def test_urgency_ends_after_ten_minutes() -> None:
    assert max_pause(doorbell(a_round("open")), now=100 + HURRY_S) == MAX_PAUSE_S


def test_scheduled_round_is_urgent_from_a_minute_before_by_the_coordinators_clock() -> None:
    later = doorbell(a_round("scheduled", opens_in_s=SOON_S + 200))
    assert max_pause(later, now=299) == MAX_PAUSE_S
    assert max_pause(later, now=300) == RETURN_WITHIN_S


def test_node_without_a_known_round_is_urgent() -> None:
    assert max_pause() == RETURN_WITHIN_S
    assert max_pause(doorbell(None)) == RETURN_WITHIN_S


def test_latest_message_counts() -> None:
    later = doorbell(a_round("scheduled", opens_in_s=1000))
    assert max_pause(later, doorbell(a_round("open"))) == RETURN_WITHIN_S
    assert max_pause(doorbell(a_round("open")), later) == MAX_PAUSE_S


@pytest.mark.parametrize(("requested", "used"), [(20.0, 20.0), (0.0, 1.0), (1e9, MAX_PAUSE_S)])
def test_coordinator_may_request_another_pause_within_limits(requested: float, used: float) -> None:
    greeting = welcome(a_round("open"), return_within=requested)
    assert max_pause(greeting) == used
    assert max_pause(greeting, doorbell(a_round("open"))) == used
