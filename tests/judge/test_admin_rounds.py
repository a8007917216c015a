"""Operators schedule, view, void and recompute rounds."""

import html
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from kombu.exceptions import OperationalError

from judge.admin import records
from judge.models import Flag, Round, Ruling, Score, Season, Standing
from swarm_tasks.verifier import Verifier
from swarm_web.celery import app
from tests.factories import make_node, make_round, make_score
from tests.judge.conftest import SUMS, Clock
from tests.judge.operators import (
    act,
    answer_round,
    close_round,
    decide,
    misgrade,
    only_ruling,
    play_round,
    standing_of,
    use_unknown_dataset,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> Iterator[None]:
    """Run tasks synchronously when they are enqueued."""
    app.conf.update(task_always_eager=True)
    yield
    app.conf.update(task_always_eager=False)


def schedule(operator: Client, season: Season, opens_at: datetime) -> str:
    response = operator.post(
        "/admin/judge/round/add/",
        {
            "season": season.pk,
            "opens_at_0": opens_at.strftime("%Y-%m-%d"),
            "opens_at_1": opens_at.strftime("%H:%M:%S"),
        },
        follow=True,
    )
    return html.unescape(response.content.decode())


def read_round(operator: Client, judge_round: Round) -> str:
    response = operator.get(f"/admin/judge/round/{judge_round.pk}/change/")
    return html.unescape(response.content.decode())


# ---- scheduling


def test_a_round_is_scheduled_by_hand_with_its_questions(
    operator: Client, season: Season, clock: Clock
) -> None:
    opens_at = clock.advance(3600).replace(microsecond=0)
    page = schedule(operator, season, opens_at)
    judge_round = Round.objects.get()
    assert (judge_round.phase, judge_round.opens_at, judge_round.questions.count()) == (
        "scheduled",
        opens_at,
        4,
    )
    assert "Round 1 is scheduled" in page


def test_a_round_with_a_past_time_is_scheduled_for_now(
    operator: Client, season: Season, clock: Clock
) -> None:
    schedule(operator, season, clock.now - timedelta(days=1))
    assert clock.now < Round.objects.get().opens_at < clock.now + timedelta(minutes=1)


def test_the_form_proposes_the_running_season(operator: Client, season: Season) -> None:
    page = operator.get("/admin/judge/round/add/").content.decode()
    assert f'<option value="{season.pk}" selected>Sums</option>' in page


def test_a_season_that_is_not_running_gets_no_round_and_an_error(
    operator: Client, clock: Clock
) -> None:
    draft = Season.objects.create(name="Draft", tasks=SUMS)
    page = schedule(operator, draft, clock.now)
    assert "Draft is draft: only the running season can have rounds." in page
    assert not Round.objects.exists()


def test_an_invalid_time_is_a_form_error(operator: Client, season: Season) -> None:
    data = {"season": season.pk, "opens_at_0": "soon", "opens_at_1": "12:00"}
    response = operator.post("/admin/judge/round/add/", data)
    assert (response.status_code, Round.objects.count()) == (200, 0)
    assert "Enter a valid date." in response.content.decode()


def test_questions_that_cannot_be_drawn_are_a_form_error_with_a_remedy(
    operator: Client, season: Season, clock: Clock
) -> None:
    remedy = use_unknown_dataset(season)
    page = schedule(operator, season, clock.now)
    assert remedy in page
    assert "<h1>Schedule a round</h1>" in page


# ---- viewing


def test_the_list_shows_phase_turnout_and_commitment(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    played = play_round(season, clock, verifier, amber=4, birch=2)
    page = operator.get("/admin/judge/round/").content.decode()
    assert "Closed" in page
    assert "2 scored of 2 seated" in page
    assert f"{played.commitment[:12]}…" in page


def test_a_rounds_page_shows_questions_answers_and_scores(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    played = play_round(season, clock, verifier, amber=4, birch=2)
    page = read_round(operator, played)
    question = played.questions.get(position=1)
    assert question.prompt in page
    assert str(question.spec["index"]) in page
    assert "2, 2 right" in page
    assert "8 stored, 0 without a verdict" in page
    assert "amber: 1.000, 4 of 4 solved" in page
    assert played.commitment in page


@pytest.mark.slow
def test_a_rounds_page_shows_flags_and_rulings(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    played = play_round(season, clock, verifier, amber=4)
    Flag.objects.create(
        kind=Flag.Kind.JUMPED,
        round=played,
        node=standing_of("amber").node,
        text="from nothing to all",
        p_adjusted=0.001,
        created_at=clock.now,
    )
    decide(operator, "judge/round", "void", played.pk, reason="wrong mix")
    page = read_round(operator, played)
    assert "amber: from nothing to all [open]" in page
    assert "olive excluded a round from every score: wrong mix" in page


def test_a_round_cannot_be_edited(operator: Client, open_round: Round) -> None:
    response = operator.post(
        f"/admin/judge/round/{open_round.pk}/change/", {"phase": "closed", "void_reason": "x"}
    )
    assert response.status_code == 403
    open_round.refresh_from_db()
    assert (open_round.phase, open_round.void_reason) == ("open", "")


@pytest.mark.parametrize("model", ["round", "score"])
def test_rounds_and_scores_cannot_be_deleted(
    operator: Client, season: Season, clock: Clock, verifier: Verifier, model: str
) -> None:
    played = play_round(season, clock, verifier, amber=4)
    pk = played.pk if model == "round" else Score.objects.get().pk
    assert operator.post(f"/admin/judge/{model}/{pk}/delete/", {"post": "yes"}).status_code == 403
    assert "Delete selected" not in operator.get(f"/admin/judge/{model}/").content.decode()


# ---- voiding


def test_voiding_asks_for_a_reason_first(operator: Client, open_round: Round) -> None:
    page = act(operator, "judge/round", "void", open_round.pk)
    assert "These rounds will no longer count" in page
    assert 'name="reason"' in page
    open_round.refresh_from_db()
    assert open_round.phase == Round.Phase.OPEN


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201])
def test_a_round_is_not_voided_without_a_valid_reason(
    operator: Client, open_round: Round, reason: str
) -> None:
    page = decide(operator, "judge/round", "void", open_round.pk, reason=reason)
    assert "errornote" in page
    open_round.refresh_from_db()
    assert open_round.phase == Round.Phase.OPEN
    assert not Ruling.objects.exists()


def test_a_voided_round_is_recorded_with_actor_and_reason(
    operator: Client, open_round: Round
) -> None:
    page = decide(operator, "judge/round", "void", open_round.pk, reason="wrong mix")
    open_round.refresh_from_db()
    assert (open_round.phase, open_round.void_reason) == (Round.Phase.VOID, "wrong mix")
    assert only_ruling() == ("void", "olive", "wrong mix")
    assert "Voided round 1; the leaderboard is updated." in page


@pytest.mark.slow
def test_several_rounds_are_voided_with_one_reason(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    keys = [play_round(season, clock, verifier, amber=4).pk for _ in range(2)]
    decide(operator, "judge/round", "void", *keys, reason="wrong mix")
    assert set(Ruling.objects.values_list("round", flat=True)) == set(keys)
    assert not Standing.objects.exists()


def test_a_round_is_not_voided_twice(operator: Client, open_round: Round) -> None:
    decide(operator, "judge/round", "void", open_round.pk, reason="wrong mix")
    page = decide(operator, "judge/round", "void", open_round.pk, reason="again")
    assert "Nothing changed for round 1: it is already void." in page
    assert Ruling.objects.count() == 1


def test_staff_with_view_permission_cannot_void_a_round(open_round: Round) -> None:
    viewer = User.objects.create_user("vera", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_round"))
    client = Client()
    client.force_login(viewer)
    decide(client, "judge/round", "void", open_round.pk, reason="wrong mix")
    open_round.refresh_from_db()
    assert open_round.phase == Round.Phase.OPEN


# ---- recomputing


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_recomputed_round_corrects_the_leaderboard_and_is_recorded(
    operator: Client, season: Season, clock: Clock, verifier: Verifier
) -> None:
    played = answer_round(season, clock, verifier, amber=4, birch=4)
    misgrade(played, "birch")
    close_round(played, clock)
    assert standing_of("birch").score == 0
    page = decide(operator, "judge/round", "recompute", played.pk, reason="a verifier was wrong")
    assert standing_of("birch").score == 1
    assert only_ruling() == ("recompute", "olive", "a verifier was wrong")
    assert Ruling.objects.get().changes == {"answers_changed": 4, "scores_changed": 1}
    assert "A worker is grading round 1 again" in page


@pytest.mark.usefixtures("worker")
def test_a_round_that_is_not_closed_is_not_recomputed(operator: Client, open_round: Round) -> None:
    page = decide(operator, "judge/round", "recompute", open_round.pk, reason="a try")
    assert "Nothing changed for round 1: it is open; only closed rounds have scores." in page
    assert not Ruling.objects.exists()


def test_an_unreachable_queue_is_reported(
    operator: Client,
    season: Season,
    clock: Clock,
    verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError

    played = play_round(season, clock, verifier, amber=4)
    monkeypatch.setattr("judge.tasks.recompute.delay", fail)
    page = decide(operator, "judge/round", "recompute", played.pk, reason="a try")
    assert "Nothing changed for round 1: the task queue cannot be reached" in page


def test_scores_come_before_the_nodes_without_one(operator: Client, season: Season) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    for number in range(records.SHOWN):
        node, _ = make_node(f"absent-{number}")
        Score.objects.create(round=judge_round, node=node, status=Score.Status.ABSENT)
    make_score(judge_round, make_node("zinnia")[0], correct=1)
    assert "zinnia: 0.0" in read_round(operator, judge_round)
