"""Rounds are scheduled, opened and closed exactly once, and outages cost nodes no time."""

from datetime import timedelta

import msgspec
import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from judge.engine import TICK, Phase
from judge.models import Question, Round, Season, Seat
from judge.selectors.rounds import current_round
from judge.services.rounds import RETURN_TIME, advance_rounds, watch_seasons
from judge.services.scheduling import LEAD_TIME, ensure_next_round, schedule_round
from judge.services.seasons import end_season, pause_season, resume_season
from swarm_tasks.keyspace import Part, index_part, question_part
from swarm_tasks.quiz import QuizRules, commit_quiz
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.presence import Departure, record_departures, touch
from tests.judge.toys import OPEN_S, SCORING_S, Clock, Site, make_toy_season


def phase_of(judge_round: Round) -> str:
    judge_round.refresh_from_db()
    return judge_round.phase


# ---- scheduling


def test_questions_come_from_the_judges_part_of_the_key_space(open_round: Round) -> None:
    for question in open_round.questions.all():
        assert index_part(question.spec["index"]) is Part.JUDGE
        assert question_part(question.prompt) is Part.JUDGE


def test_two_rounds_ask_different_questions(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    for _ in range(2):
        schedule_round(season, opens_at=clock.now + LEAD_TIME, now=clock.now, verifier=verifier)
    first, second = (set(r.questions.values_list("prompt", flat=True)) for r in Round.objects.all())
    assert first != second


def test_a_round_is_committed_to_before_it_opens(site: Site) -> None:
    judge_round = site.schedule(in_seconds=60)
    rules = msgspec.convert(judge_round.rules, QuizRules)
    assert (rules.round, rules.season) == (judge_round.number, site.season.name)
    assert judge_round.commitment == commit_quiz(rules, secret=bytes(judge_round.secret))


def test_a_season_schedules_its_next_round_by_its_cadence(site: Site) -> None:
    judge_round = site.open()
    site.advance(OPEN_S)
    following = ensure_next_round(site.season, now=site.clock.now, verifier=site.verifier)
    assert following is not None
    assert following.opens_at - judge_round.opens_at == timedelta(seconds=120)


def test_no_round_is_scheduled_while_one_waits_or_is_open(site: Site) -> None:
    site.schedule(in_seconds=60)
    assert ensure_next_round(site.season, now=site.clock.now, verifier=site.verifier) is None
    site.advance(60)
    assert ensure_next_round(site.season, now=site.clock.now, verifier=site.verifier) is None


def test_an_overdue_round_is_still_announced_before_it_opens(site: Site) -> None:
    site.open()
    now = site.clock.advance(1000)
    site.advance()
    following = ensure_next_round(site.season, now=now, verifier=site.verifier)
    assert following is not None
    assert following.opens_at == now + LEAD_TIME


def test_no_round_is_scheduled_in_a_paused_or_manual_season(site: Site) -> None:
    by_hand = make_toy_season("By hand")
    by_hand.cadence_seconds = 0
    assert ensure_next_round(by_hand, now=site.clock.now, verifier=site.verifier) is None
    pause_season(site.season)
    site.season.refresh_from_db()
    assert ensure_next_round(site.season, now=site.clock.now, verifier=site.verifier) is None


# ---- opening


def test_a_round_opens_at_its_time_and_not_before(site: Site) -> None:
    judge_round = site.schedule(in_seconds=60)
    assert site.advance(59) == []
    assert site.advance(1) == [judge_round]
    assert phase_of(judge_round) == Phase.OPEN


def test_a_second_tick_changes_nothing(site: Site) -> None:
    site.open()
    assert site.advance() == []


def test_a_round_that_opens_late_has_its_full_time(site: Site) -> None:
    judge_round = site.schedule()
    site.advance(500)
    judge_round.refresh_from_db()
    assert judge_round.closes_at - site.clock.now == timedelta(seconds=OPEN_S)
    assert judge_round.score_by - judge_round.closes_at == timedelta(seconds=SCORING_S)


def test_a_suspended_tick_opens_a_round_at_the_time_of_later_ticks(site: Site) -> None:
    judge_round = site.schedule()
    slept_since = site.clock.now
    watch_seasons(now=site.clock.advance(600))
    advance_rounds(now=slept_since)
    judge_round.refresh_from_db()
    assert judge_round.closes_at - site.clock.now == timedelta(seconds=OPEN_S)


def test_connected_nodes_are_invited_and_others_not(site: Site) -> None:
    site.join("gone", "here")
    site.clock.advance(100)
    assert set(site.open("here").seats.values_list("node__name", flat=True)) == {"here"}


def test_a_node_that_is_reconnecting_is_invited(site: Site) -> None:
    (node,) = site.join("back-soon")
    record_departures([Departure(node.pk, goodbye=True, now=site.clock.advance(1))])
    site.clock.advance(5)
    assert site.open().seats.get().node == node


def test_a_round_waits_while_another_is_open_and_opens_in_the_tick_that_ends_it(
    site: Site,
) -> None:
    first = site.open()
    second = site.schedule()
    assert site.advance(OPEN_S - 1) == []
    assert site.advance(1) == [first, second]
    assert [phase_of(first), phase_of(second)] == [Phase.CLOSED, Phase.OPEN]


def test_the_open_round_is_the_current_one_while_many_others_are_overdue(site: Site) -> None:
    for seconds in range(17):
        site.schedule(in_seconds=seconds)
    (opened,) = site.advance(120)
    assert current_round(site.season) == opened


def test_a_paused_season_opens_no_round_until_resumed(site: Site) -> None:
    judge_round = site.schedule()
    assert pause_season(site.season)
    assert site.advance(600) == []
    assert resume_season(site.season)
    assert site.advance() == [judge_round]


def test_ending_a_season_drops_rounds_that_never_opened_and_finishes_the_open_one(
    site: Site,
) -> None:
    judge_round, waiting = site.open(), site.schedule()
    end_season(site.season, now=site.clock.now)
    assert not Round.objects.filter(pk=waiting.pk).exists()
    assert site.advance(OPEN_S) == [judge_round]
    assert phase_of(judge_round) == Phase.CLOSED


# ---- end of answering


def test_answering_ends_at_the_deadline_and_not_before(site: Site) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrr-")
    assert site.advance(OPEN_S - 1) == []
    assert site.advance(1) == [judge_round]
    assert phase_of(judge_round) == Phase.SCORING


def test_answering_ends_early_when_every_seat_is_complete(site: Site) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrrr")
    assert site.advance(1) == [judge_round]


def test_answering_does_not_end_early_if_the_season_disables_it(site: Site) -> None:
    Season.objects.update(early_advance=False)
    site.join("amber")
    site.answer(amber="rrrr")
    assert site.advance(OPEN_S - 1) == []


def test_answering_continues_while_an_invited_node_is_missing(site: Site) -> None:
    site.join("amber", "slow")
    site.answer("slow", amber="rrrr")
    assert site.advance(OPEN_S - 1) == []


# ---- end of scoring


def test_a_round_closes_once_all_answers_are_graded(site: Site) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrrr")
    site.advance(1)
    assert site.advance(1) == []
    site.grade()
    assert site.advance(1) == [judge_round]
    assert (phase_of(judge_round), judge_round.closed_at) == (Phase.CLOSED, site.clock.now)


def test_a_round_closes_at_its_deadline_with_ungraded_answers(site: Site) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrr-")
    site.advance(OPEN_S)
    assert site.advance(SCORING_S - 1) == []
    assert site.advance(1) == [judge_round]
    assert phase_of(judge_round) == Phase.CLOSED


def test_one_late_tick_closes_a_round_without_seats(site: Site) -> None:
    judge_round = site.open()
    assert site.advance(3600) == [judge_round]
    assert phase_of(judge_round) == Phase.CLOSED


# ---- outages


def simulate_outage(site: Site, *, after: float) -> None:
    """Tick, advance the clock by an outage, then tick twice."""
    watch_seasons(now=site.clock.now)
    watch_seasons(now=site.clock.advance(TICK.total_seconds() + after))
    watch_seasons(now=site.clock.now)


def test_an_outage_moves_the_deadlines_of_an_open_round_once(site: Site) -> None:
    judge_round = site.open()
    simulate_outage(site, after=1000)
    before = (judge_round.opens_at, judge_round.closes_at, judge_round.score_by)
    judge_round.refresh_from_db()
    assert judge_round.opens_at == before[0]
    assert judge_round.closes_at - before[1] == timedelta(seconds=1000)
    assert judge_round.score_by - before[2] == timedelta(seconds=1000)


def test_an_outage_while_a_round_is_scored_moves_only_the_end_of_scoring(site: Site) -> None:
    site.join("amber")
    judge_round = site.answer(amber="rrrr")
    site.advance(1)
    simulate_outage(site, after=1000)
    before = (judge_round.closes_at, judge_round.score_by)
    assert phase_of(judge_round) == Phase.SCORING
    assert judge_round.closes_at == before[0]
    assert judge_round.score_by - before[1] == timedelta(seconds=1000)


def test_an_overdue_round_opens_once_nodes_had_time_to_reconnect(site: Site) -> None:
    waiting = site.schedule(in_seconds=10)
    simulate_outage(site, after=1000)
    waiting.refresh_from_db()
    assert waiting.opens_at == site.clock.now + RETURN_TIME
    assert waiting.closes_at == waiting.opens_at + timedelta(seconds=OPEN_S)


def test_a_slow_clock_extends_no_deadline(site: Site) -> None:
    judge_round = site.open()
    simulate_outage(site, after=13)
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert judge_round.closes_at == before


def simulate_silence(site: Site, *, seconds: int) -> None:
    """Tick each second while no web process is ready."""
    watch_seasons(now=site.clock.now, silence=timedelta(0))
    for silent in range(1, seconds + 1):
        watch_seasons(now=site.clock.advance(1), silence=timedelta(seconds=silent))
        site.advance(0)


def test_a_round_stays_open_and_is_extended_while_no_web_process_is_ready(
    site: Site,
) -> None:
    judge_round = site.open()
    closes_at = judge_round.closes_at
    simulate_silence(site, seconds=2 * OPEN_S)
    watch_seasons(now=site.clock.advance(1), silence=timedelta(0))
    site.advance(0)
    judge_round.refresh_from_db()
    assert judge_round.phase == Phase.OPEN
    assert judge_round.closes_at - closes_at == timedelta(seconds=2 * OPEN_S + 10)


def test_rounds_wait_for_nodes_that_reconnect_slowly(site: Site, settings: Settings) -> None:
    settings.GATEWAY_RETURN_WITHIN_S = 30.0
    judge_round = site.open()
    closes_at = judge_round.closes_at
    simulate_silence(site, seconds=20)
    judge_round.refresh_from_db()
    assert judge_round.closes_at - closes_at == timedelta(seconds=20 + 30 + 5)


def test_a_round_waits_for_a_web_process_and_invites_reconnected_nodes(
    site: Site,
) -> None:
    (node,) = site.join("amber")
    waiting = site.schedule(in_seconds=30)
    simulate_silence(site, seconds=100)
    assert phase_of(waiting) == Phase.SCHEDULED
    touch([node], now=site.clock.advance(5))
    watch_seasons(now=site.clock.now, silence=timedelta(0))
    site.advance(5)
    waiting.refresh_from_db()
    assert waiting.phase == Phase.OPEN
    assert [seat.came_late for seat in waiting.seats.all()] == [False]
    assert waiting.closes_at == site.clock.now + timedelta(seconds=OPEN_S)


def test_an_outage_of_everything_extends_deadlines_once(site: Site) -> None:
    judge_round = site.open()
    closes_at = judge_round.closes_at
    watch_seasons(now=site.clock.now, silence=timedelta(0))
    watch_seasons(now=site.clock.advance(100), silence=timedelta(seconds=100))
    watch_seasons(now=site.clock.advance(1), silence=timedelta(seconds=101))
    watch_seasons(now=site.clock.advance(1), silence=timedelta(0))
    judge_round.refresh_from_db()
    assert judge_round.closes_at - closes_at == timedelta(seconds=101 + 10)


def test_answers_after_an_outage_are_in_time_before_the_clock_ticks_again(site: Site) -> None:
    site.join("amber")
    judge_round = site.open("amber")
    watch_seasons(now=site.clock.now)
    site.clock.advance(1000)
    site.sit(judge_round, "amber")
    assert len(site.submit(judge_round, "amber", "rrrr").accepted) == 4


def test_a_season_without_rounds_is_watched(site: Site) -> None:
    watch_seasons(now=site.clock.now)
    site.season.refresh_from_db()
    assert site.season.watched_at == site.clock.now


def test_an_ended_season_is_watched_while_its_round_is_open(site: Site) -> None:
    judge_round = site.open()
    end_season(site.season, now=site.clock.now)
    simulate_outage(site, after=1000)
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert judge_round.closes_at - before == timedelta(seconds=1000)
    site.advance((judge_round.closes_at - site.clock.now).total_seconds())
    watch_seasons(now=site.clock.advance(5000))
    site.season.refresh_from_db()
    assert site.season.watched_at != site.clock.now


# ---- database constraints


def test_a_second_open_round_of_a_season_violates_a_constraint(site: Site) -> None:
    site.open()
    other = site.schedule()
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=other.pk).update(phase=Phase.OPEN)


def test_a_second_running_season_violates_a_constraint(site: Site) -> None:
    other = make_toy_season("Others")
    with pytest.raises(IntegrityError), transaction.atomic():
        Season.objects.filter(pk=other.pk).update(state=Season.State.RUNNING)


def test_deadlines_out_of_order_violate_a_constraint(site: Site) -> None:
    judge_round = site.open()
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=judge_round.pk).update(closes_at=judge_round.opens_at)


def test_a_second_question_at_a_position_violates_a_constraint(site: Site) -> None:
    judge_round = site.open()
    first = judge_round.questions.get(position=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Question.objects.create(
            round=judge_round, position=1, dataset="gcd", spec=first.spec, prompt="?"
        )


def test_a_second_seat_of_a_node_violates_a_constraint(site: Site) -> None:
    site.join("amber")
    judge_round = site.open("amber")
    with pytest.raises(IntegrityError), transaction.atomic():
        Seat.objects.create(round=judge_round, node=site.nodes["amber"])
