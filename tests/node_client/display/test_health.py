"""Is my node working? The answer is the first obstacle that is found."""

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import msgspec
import pytest

from node_client.display.health import OFFLINE_GRACE_S, PROBLEM_SHOWN_FOR, Health, assess_health
from node_client.display.view import NodeView
from node_client.storage.pauses import REASON_TEXTS, Pause
from node_client.swarm.connection import ConnectionState
from swarm_protocol.messages import RoundInfo
from tests.node_client.panel_views import full_view
from tests.node_client.shell_fakes import empty_view

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLOCK = 10_000.0
ROUND_8 = RoundInfo(8, "scheduled", "2026-01-01T12:05:00Z", "2026-01-01T12:07:00Z", 64)


def judge(view: NodeView, *, now: datetime = NOON) -> Health:
    return assess_health(view, now=now, clock=CLOCK)


def offline_view(*, since_s: float) -> NodeView:
    view = full_view()
    view.connection = ConnectionState(
        "waiting", "the coordinator\x1b[2J went away", retry_at=CLOCK + 4
    )
    view.offline_since = CLOCK - since_s
    return view


def after_round_7(*, answered: int) -> NodeView:
    view = full_view()
    view.show_round(view.round)
    view.answered[7] = answered
    view.show_round(ROUND_8)
    return view


def test_node_that_answered_all_of_its_last_round_is_healthy() -> None:
    health = judge(after_round_7(answered=64))
    assert (health.state, health.text) == ("working", "is healthy.")
    assert health.reason == "It is connected and answered all questions of round 7."


def test_node_without_coordinator_trains_alone() -> None:
    assert judge(empty_view()).text == "trains alone."


def test_short_loss_of_the_connection_needs_no_attention() -> None:
    health = judge(offline_view(since_s=OFFLINE_GRACE_S - 1))
    assert (health.state, health.text) == ("waiting", "is offline.")
    assert health.reason.startswith("The coordinator")
    assert health.reason.endswith("went away; trying again in 4 s. Training goes on.")
    assert "\x1b" not in health.reason


@pytest.mark.parametrize("phase", ["waiting", "connecting"])
def test_wait_requested_by_the_coordinator_needs_no_attention(phase: Any) -> None:
    view = offline_view(since_s=3 * 3600)
    reason = "the coordinator is under maintenance"
    view.connection = ConnectionState(phase, reason, retry_at=CLOCK + 20, planned=True)
    health = judge(view)
    assert health.state == "waiting"
    assert "doctor" not in health.reason
    if phase == "waiting":
        why = "The coordinator is under maintenance; trying again in 20 s. Training goes on."
        assert (health.text, health.reason) == ("is offline, as its coordinator asked.", why)


def test_long_loss_of_the_connection_is_shown_with_a_remedy() -> None:
    health = judge(offline_view(since_s=720))
    assert health.state == "needs attention"
    assert "Gone for 12:00: run `swarm-node doctor https://swarm.example.org`." in health.reason


def test_loss_lasts_from_the_disconnection_to_the_reconnection() -> None:
    view = full_view()
    view.show_connection(ConnectionState("waiting", "gone"))
    first = view.offline_since
    view.show_connection(ConnectionState("connecting"))
    assert view.offline_since == first is not None
    view.show_connection(ConnectionState("connected"))
    assert view.offline_since is None


def test_failed_save_needs_attention_for_a_limited_time() -> None:
    view = full_view()
    view.show_problem("checkpoint", "No checkpoint was saved: disk full", "Free some space.")
    assert view.problem is not None
    health = judge(view, now=view.problem.moment + timedelta(minutes=1))
    assert (health.state, health.text) == ("needs attention", "cannot save its work.")
    assert "disk full Free some space." in health.reason
    assert judge(view, now=view.problem.moment + PROBLEM_SHOWN_FOR).state == "working"


def test_temporary_problem_needs_no_attention() -> None:
    view = full_view()
    view.show_problem("rate.limited", "too many messages", "Wait.")
    assert view.problem is not None
    assert judge(view, now=view.problem.moment).state == "working"


def test_stopping_node_shows_what_it_still_does() -> None:
    view = full_view()
    view.stopping = True
    assert judge(view).text == "is stopping."
    assert "saves" in judge(view).reason


def test_late_answers_need_attention() -> None:
    health = judge(after_round_7(answered=32))
    assert health.state == "needs attention"
    assert health.text == "answers too slowly: round 7 closed before it had finished."


def test_round_without_any_answer_is_shown_as_missed() -> None:
    assert judge(after_round_7(answered=0)).text == "is connected but missed round 7."


@pytest.mark.parametrize("phase", ["scoring", "void"])
def test_unacknowledged_answers_of_an_ended_round_need_no_attention(phase: str) -> None:
    view = full_view()
    view.answered[7] = 32
    assert view.round is not None
    view.show_round(msgspec.structs.replace(view.round, phase=phase))
    assert judge(view).state == "working"


def test_untrained_base_node_is_healthy() -> None:
    view = full_view()
    assert view.standing is not None
    view.arm = "base"
    view.standing = msgspec.structs.replace(view.standing, rank=None, remark="base")
    health = judge(view)
    assert (health.state, health.text) == ("working", "is healthy.")
    assert "untrained model" in health.reason


def test_pause_is_shown_with_its_reason_and_its_end() -> None:
    view = full_view()
    view.show_pause(Pause("asked"))
    health = judge(view)
    assert (health.state, health.text) == ("waiting", "is paused: its owner paused it.")
    assert "`swarm-node resume`" in health.reason
    view.show_pause(Pause("hours", NOON))
    assert (
        judge(view).text
        == f"is paused until {NOON.astimezone():%Y-%m-%d %H:%M}: {REASON_TEXTS['hours']}."
    )


def test_pause_does_not_count_as_a_loss_of_the_connection() -> None:
    view = full_view()
    view.show_pause(Pause("hours"))
    view.show_connection(ConnectionState("waiting", "the node pauses"))
    view.show_pause(None)
    view.show_connection(ConnectionState("connecting"))
    # The view records losses by the machine's own clock.
    assert assess_health(view, now=NOON, clock=monotonic()).text == "is connecting."
