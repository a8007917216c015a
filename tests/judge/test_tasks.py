"""What beat triggers moves rounds through their whole life, and finds lost work again."""

import pytest

from judge import tasks
from judge.models import Answer, Round, Score, Season
from judge.services.answers import LOST_AFTER, submit_answers, take_seat
from judge.services.rounds import LEAD, schedule_round
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import Verifier
from tests.judge.conftest import Clock, answers_to, connect_node


@pytest.fixture(autouse=True)
def stopped_clock(clock: Clock, verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tasks read the test's clock and use its verifier."""
    monkeypatch.setattr("judge.tasks.timezone.now", lambda: clock.now)
    monkeypatch.setattr(tasks, "process_verifier", lambda: verifier)


def phase() -> str:
    return Round.objects.values_list("phase", flat=True).latest("number")


def test_ticks_alone_lead_a_round_from_schedule_to_close(season: Season, clock: Clock) -> None:
    node = connect_node("amber", clock)
    tasks.tick_rounds()
    assert phase() == Round.Phase.SCHEDULED
    clock.advance(LEAD.total_seconds())
    tasks.tick_rounds()
    assert phase() == Round.Phase.OPEN
    quiz = Round.objects.get()
    take_seat(node, number=quiz.number, now=clock.now)
    receipt = submit_answers(
        node, number=quiz.number, answers=answers_to(quiz, right=4), now=clock.now
    )
    tasks.grade_answers(receipt.stored)
    tasks.tick_rounds()
    quiz.refresh_from_db()
    assert quiz.phase == Round.Phase.CLOSED
    assert Score.objects.get().score == 1


def test_a_tick_that_cannot_draw_questions_still_opens_the_round_that_is_due(
    season: Season, clock: Clock, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule_round(season, opens_at=clock.now, now=clock.now, verifier=verifier)

    def fail(*_: object, **__: object) -> None:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "no child")

    monkeypatch.setattr(tasks, "ensure_next_round", fail)
    with pytest.raises(RefusedError):
        tasks.tick_rounds()
    assert phase() == Round.Phase.OPEN


def test_the_sweep_grades_what_was_lost(open_round: Round, clock: Clock) -> None:
    node = connect_node("amber", clock)
    take_seat(node, number=open_round.number, now=clock.now)
    submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=3), now=clock.now
    )
    clock.advance(LOST_AFTER.total_seconds() + 1)
    tasks.sweep_unscored()
    assert list(Answer.objects.order_by("pk").values_list("solved", flat=True)) == [
        True,
        True,
        True,
        False,
    ]
