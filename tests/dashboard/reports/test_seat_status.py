"""Test the status of a node's seat in the current round."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from judge.engine import Phase
from judge.models import Round, Season, Seat
from swarm_web.dashboard.reports.node_health import SeatStatus, read_seat_status
from swarm_web.nodes.models import Node
from tests.factories import make_answer, make_node, make_round, make_seat

NOW = timezone.now()


@pytest.fixture
def amber(db: None) -> Node:
    return make_node("amber", last_seen=timezone.now())[0]


@pytest.fixture
def open_round(season: Season) -> Round:
    return make_round(season, phase=Phase.OPEN, questions=16, opens_at=NOW)


def answer_some(judge_round: Round, node: Node, *, count: int) -> None:
    make_seat(judge_round, node)
    for question in judge_round.questions.filter(position__lte=count):
        make_answer(question, node, solved=True)


def read(node: Node, season: Season, *, after_s: float = 0) -> SeatStatus | None:
    return read_seat_status(node, season, now=NOW + timedelta(seconds=after_s))


def test_only_own_answers_to_the_current_round_are_counted(
    season: Season, amber: Node, open_round: Round
) -> None:
    closed = make_round(season, phase=Phase.CLOSED, questions=16, opens_at=NOW - timedelta(hours=1))
    answer_some(closed, amber, count=9)
    answer_some(open_round, make_node("birch")[0], count=7)
    answer_some(open_round, amber, count=3)
    assert read(amber, season) == SeatStatus(
        number=open_round.number,
        is_open=True,
        offered=True,
        came_late=False,
        answered=3,
        questions=16,
        half_over=False,
    )


@pytest.mark.parametrize(("after_s", "half_over"), [(29, False), (31, True)])
def test_seat_without_requested_questions_shows_whether_half_of_the_time_is_over(
    season: Season, amber: Node, open_round: Round, after_s: float, half_over: bool
) -> None:
    Seat.objects.create(round=open_round, node=amber)
    seat = read(amber, season, after_s=after_s)
    assert seat is not None
    assert (seat.offered, seat.answered, seat.half_over) == (False, 0, half_over)


def test_open_round_takes_precedence_over_a_scoring_one(
    season: Season, amber: Node, open_round: Round
) -> None:
    scored = make_round(season, phase=Phase.SCORING, opens_at=NOW - timedelta(minutes=5))
    for judge_round in (scored, open_round):
        make_seat(judge_round, amber)
    seat = read(amber, season)
    assert seat is not None
    assert (seat.number, seat.is_open) == (open_round.number, True)


@pytest.mark.parametrize("phase", [Phase.SCHEDULED, Phase.CLOSED, Phase.VOID])
def test_round_that_is_not_current_gives_no_status(
    season: Season, amber: Node, phase: Phase
) -> None:
    make_seat(make_round(season, phase=phase), amber)
    assert read(amber, season) is None


def test_node_without_a_seat_has_no_status(season: Season, amber: Node, open_round: Round) -> None:
    assert read(amber, season) is None


def test_page_of_a_node_in_its_first_round_shows_its_progress(
    amber: Node, open_round: Round, client: Client
) -> None:
    answer_some(open_round, amber, count=3)
    html = client.get(amber.get_absolute_url()).content.decode()
    assert "is connected and answering its first round." in html
    assert f"It has answered 3 of 16 questions of round {open_round.number}." in html
    assert "waiting for its first round" not in html
    assert "3 of 16 <small>answered, <a" in html
