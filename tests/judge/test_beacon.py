"""Rounds whose secret is mixed with a public beacon, through the services and a real server."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command

from judge import tasks
from judge.engine import BEACON_TIMEOUT, Phase
from judge.models import ChainLink, Round, Season
from judge.repeats import read_asked_rounds
from judge.selectors.rounds import describe_round
from judge.services import scheduling
from judge.services.answers import Submission, offered_questions, store_submissions
from judge.services.oversight import void_round
from judge.services.rounds import watch_seasons
from judge.services.scheduling import BEACON_SLACK, draw_waiting_rounds, ensure_next_round
from judge.services.seasons import end_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText
from swarm_tasks.asked import entry_of, extend_chain, seal_of
from swarm_tasks.beacon import LEAD, Beacon, mix_key
from swarm_tasks.quiz import QUIZ_FORMAT_BEACON, QuizRules, commit_quiz
from swarm_web.core import drand
from tests.drand import Drand, honest, running, value_of
from tests.judge.test_no_repeats import FewQuestions
from tests.judge.toys import QUESTIONS, Clock, Site

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any) -> Iterator[Drand]:
    with running() as server:
        settings.BEACON_URLS = [server.url]
        yield server


@pytest.fixture
def site(site: Site) -> Site:
    site.season.public_beacon = True
    site.season.save()
    return site


def rules_of(judge_round: Round) -> QuizRules:
    return msgspec.convert(judge_round.rules, QuizRules)


def beacon_of(judge_round: Round) -> Beacon:
    named = rules_of(judge_round).beacon
    assert isinstance(named, Beacon)
    return named


def wait_until(clock: Clock, moment: datetime) -> None:
    clock.advance((moment - clock.now).total_seconds())


def draw(site: Site, clock: Clock) -> list[Round]:
    return draw_waiting_rounds(now=clock.now, fetch=drand.fetch_beacon, verifier=site.verifier)


def draw_in_time(site: Site, clock: Clock, judge_round: Round) -> None:
    """Advance the clock until the beacon's value is published, and draw the round."""
    wait_until(clock, beacon_of(judge_round).emitted_at + timedelta(seconds=2))
    assert draw(site, clock) == [judge_round]
    judge_round.refresh_from_db()


# ---- before the value is published


def test_the_commitment_names_an_unpublished_beacon_value(site: Site, clock: Clock) -> None:
    judge_round = site.schedule()
    assert judge_round.commitment == commit_quiz(
        rules_of(judge_round), secret=bytes(judge_round.secret)
    )
    assert rules_of(judge_round).format == QUIZ_FORMAT_BEACON
    assert beacon_of(judge_round).emitted_at >= clock.now + LEAD
    assert judge_round.opens_at >= beacon_of(judge_round).emitted_at + BEACON_SLACK
    assert judge_round.closes_at - judge_round.opens_at == timedelta(
        seconds=site.season.open_seconds
    )
    link = ChainLink.objects.get(kind="scheduled")
    assert judge_round.commitment in link.line


def test_an_undrawn_round_announces_its_number_of_questions(site: Site) -> None:
    judge_round = site.schedule()
    assert not judge_round.questions.exists()
    assert describe_round(judge_round).questions == QUESTIONS


def test_the_beacon_is_not_fetched_before_its_time(site: Site, clock: Clock, server: Drand) -> None:
    judge_round = site.schedule()
    wait_until(clock, beacon_of(judge_round).emitted_at)
    assert draw(site, clock) == []
    assert server.asked == []


def test_a_round_without_questions_does_not_open(site: Site, clock: Clock) -> None:
    judge_round = site.schedule()
    wait_until(clock, judge_round.opens_at + timedelta(seconds=60))
    assert site.advance() == []


def test_no_other_round_is_scheduled_while_one_waits_for_the_beacon(
    site: Site, clock: Clock
) -> None:
    site.schedule()
    with pytest.raises(RefusedError) as refused:
        site.schedule()
    assert refused.value.code == ErrorCode.ROUND_UNDRAWN
    assert ensure_next_round(site.season, now=clock.now, verifier=site.verifier) is None


def test_a_season_without_a_beacon_draws_immediately(site: Site) -> None:
    site.season.public_beacon = False
    judge_round = site.schedule()
    assert "beacon" not in judge_round.rules
    assert judge_round.questions.count() == QUESTIONS


def test_unsealing_an_undrawn_round_fails_and_adds_no_link(site: Site) -> None:
    judge_round = site.schedule()
    with pytest.raises(CommandError, match="waits for the public beacon"):
        call_command("unseal_round", str(judge_round.number), reason="test")
    assert not ChainLink.objects.filter(kind="unsealed").exists()


# ---- when the value is published


def test_a_slow_tick_does_not_commit_to_a_published_value(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a large round on a busy machine may take longer than a commitment is public."""

    def close_slowly(**_when: datetime) -> list[Round]:
        clock.advance(60)
        return []

    monkeypatch.setattr(tasks, "advance_rounds", close_slowly)
    monkeypatch.setattr("judge.tasks.timezone.now", lambda: clock.now)
    monkeypatch.setattr(tasks, "process_verifier", lambda: site.verifier)
    tasks.tick_rounds()
    assert beacon_of(Round.objects.get()).emitted_at >= clock.now + LEAD


def test_the_task_fetches_from_the_configured_servers(
    site: Site, clock: Clock, server: Drand, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = site.schedule()
    wait_until(clock, beacon_of(judge_round).emitted_at + timedelta(seconds=2))
    monkeypatch.setattr("judge.tasks.timezone.now", lambda: clock.now)
    monkeypatch.setattr(tasks, "process_verifier", lambda: site.verifier)
    tasks.draw_rounds()
    assert judge_round.questions.count() == QUESTIONS


def test_the_questions_are_drawn_with_the_value_and_the_round_is_played(
    site: Site, clock: Clock, server: Drand
) -> None:
    site.join("amber")
    judge_round = site.schedule()
    draw_in_time(site, clock, judge_round)
    value = value_of(beacon_of(judge_round).round)
    assert server.asked == [value.round]
    assert judge_round.beacon == msgspec.to_builtins(value)
    key = mix_key(bytes(judge_round.secret), value).hex()[:8]
    assert {key in question.prompt for question in judge_round.questions.all()} == {True}
    assert len(judge_round.digests) == QUESTIONS

    wait_until(clock, judge_round.opens_at)
    site.join("bold")
    assert site.advance() == [judge_round]
    site.sit(judge_round, "bold")
    site.submit(judge_round, "bold", "rrrr")
    assert site.end(Round.objects.get(pk=judge_round.pk)).phase == Phase.CLOSED


def test_answers_to_an_undrawn_round_are_refused_and_do_not_hide_its_questions(
    site: Site, clock: Clock, server: Drand
) -> None:
    """A web process caches the questions of rounds: what a node sends must not cache their lack."""
    site.join("amber")
    judge_round = site.schedule()
    invented = AnswerText(question="not-a-question", text="4", finish_reason="stop")
    early = Submission(site.nodes["amber"].pk, judge_round.number, [invented], clock.now)
    (refusal,) = store_submissions([early])
    assert isinstance(refusal, RefusedError)
    assert refusal.code == ErrorCode.ROUND_NOT_OPEN
    draw_in_time(site, clock, judge_round)
    assert len(offered_questions(judge_round.pk)) == QUESTIONS


def test_drawing_twice_changes_nothing(site: Site, clock: Clock, server: Drand) -> None:
    """The second worker fetches and draws while the first one stores."""
    judge_round = site.schedule()
    wait_until(clock, beacon_of(judge_round).emitted_at + timedelta(seconds=2))

    def fetch_late(beacon: Beacon) -> Any:
        assert draw(site, clock) == [judge_round]
        return drand.fetch_beacon(beacon)

    assert draw_waiting_rounds(now=clock.now, fetch=fetch_late, verifier=site.verifier) == []
    assert judge_round.questions.count() == QUESTIONS


def test_no_question_is_repeated_and_the_next_round_commits_to_those_drawn(
    site: Site, clock: Clock, server: Drand
) -> None:
    site.verifier = FewQuestions(2 * QUESTIONS + 1)
    first = site.schedule()
    draw_in_time(site, clock, first)
    second = site.schedule()
    draw_in_time(site, clock, second)
    entry = entry_of(first.digests, seal=seal_of(bytes(first.secret)))
    assert second.rules["asked"] == extend_chain(first.rules["asked"], [entry])
    assert len({*first.digests, *second.digests}) == 2 * QUESTIONS


def test_a_season_without_questions_left_is_halted_and_the_round_voided(
    site: Site, clock: Clock, server: Drand
) -> None:
    site.verifier = FewQuestions(QUESTIONS - 2)
    judge_round = site.schedule()
    wait_until(clock, beacon_of(judge_round).emitted_at + timedelta(seconds=2))
    assert draw(site, clock) == []
    judge_round.refresh_from_db()
    assert (judge_round.phase, judge_round.void_reason) == (
        Phase.VOID,
        "the season has no questions left",
    )
    season = Season.objects.get()
    assert season.paused
    assert "task.exhausted" in season.halt_reason


# ---- when the beacon cannot be reached


def test_a_round_waits_for_the_beacon_and_opens_late(
    site: Site, clock: Clock, server: Drand
) -> None:
    server.answer = lambda number: b""
    judge_round = site.schedule()
    wait_until(clock, judge_round.opens_at + BEACON_TIMEOUT - timedelta(seconds=5))
    assert draw(site, clock) == []
    server.answer = honest
    assert draw(site, clock) == [judge_round]
    assert site.advance() == [judge_round]
    judge_round.refresh_from_db()
    assert judge_round.phase == Phase.OPEN
    assert judge_round.closes_at - clock.now == timedelta(seconds=site.season.open_seconds)


def wait_until_void(site: Site, clock: Clock, judge_round: Round) -> None:
    wait_until(clock, judge_round.opens_at + BEACON_TIMEOUT)
    assert site.advance() == [judge_round]
    judge_round.refresh_from_db()


def test_a_round_that_waited_too_long_is_voided_with_reason_and_secret_in_the_chain(
    site: Site, clock: Clock
) -> None:
    judge_round = site.schedule()
    wait_until_void(site, clock, judge_round)
    assert judge_round.phase == Phase.VOID
    assert judge_round.void_reason == "the public beacon gave no value within 10 minutes"
    link = msgspec.json.decode(ChainLink.objects.get(kind="void").line)
    assert (link["round"], link["secret"]) == (judge_round.number, bytes(judge_round.secret).hex())
    assert link["reason"] == judge_round.void_reason


def test_a_value_published_after_voiding_is_not_used(
    site: Site, clock: Clock, server: Drand
) -> None:
    judge_round = site.schedule()
    wait_until_void(site, clock, judge_round)
    assert draw(site, clock) == []
    assert not judge_round.questions.exists()


def test_the_season_continues_with_the_next_round(site: Site, clock: Clock, server: Drand) -> None:
    gone = site.schedule()
    wait_until_void(site, clock, gone)
    judge_round = ensure_next_round(site.season, now=clock.now, verifier=site.verifier)
    assert judge_round is not None
    draw_in_time(site, clock, judge_round)
    [asked] = read_asked_rounds([gone.number])
    assert extend_chain("0" * 64, [asked.entry]) == judge_round.rules["asked"]


def test_the_operator_may_void_a_waiting_round(site: Site, clock: Clock, server: Drand) -> None:
    judge_round = site.schedule()
    void_round(judge_round, reason="test", actor=None, now=clock.now)
    wait_until(clock, judge_round.opens_at)
    assert draw(site, clock) == []
    assert site.schedule().number == judge_round.number + 1


@pytest.mark.parametrize("phase", [Phase.SCHEDULED, Phase.OPEN])
def test_voiding_a_drawn_round_with_a_beacon_reveals_the_secret(
    site: Site, clock: Clock, server: Drand, phase: Phase
) -> None:
    """Then anyone can compute the questions that the round would have asked."""
    judge_round = site.schedule()
    draw_in_time(site, clock, judge_round)
    if phase == Phase.OPEN:
        wait_until(clock, judge_round.opens_at)
        site.advance()
    judge_round.refresh_from_db()
    assert judge_round.phase == phase
    void_round(judge_round, reason="test", actor=None, now=clock.now)
    link = msgspec.json.decode(ChainLink.objects.get(kind="void").line)
    assert link["secret"] == bytes(judge_round.secret).hex()


def test_a_void_round_without_a_beacon_keeps_its_secret(site: Site, clock: Clock) -> None:
    Season.objects.update(public_beacon=False)
    site.season.refresh_from_db()
    void_round(site.schedule(), reason="test", actor=None, now=clock.now)
    assert "secret" not in msgspec.json.decode(ChainLink.objects.get(kind="void").line)


def test_a_waiting_round_is_withdrawn_with_its_season(site: Site, clock: Clock) -> None:
    site.schedule()
    end_season(site.season, now=clock.now)
    assert not Round.objects.exists()


def test_downtime_of_the_judge_does_not_void_a_round(site: Site, clock: Clock) -> None:
    judge_round = site.schedule()
    watch_seasons(now=clock.now)
    clock.advance(3600)
    watch_seasons(now=clock.now)
    assert site.advance() == []
    judge_round.refresh_from_db()
    assert judge_round.phase == Phase.SCHEDULED


def test_drawing_is_retried_after_other_errors(
    site: Site, clock: Clock, server: Drand, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = site.schedule()
    wait_until(clock, beacon_of(judge_round).emitted_at + timedelta(seconds=2))

    def fail(*_args: object, **_kwargs: object) -> None:
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "broken")

    with monkeypatch.context() as broken:
        broken.setattr(scheduling, "draw_quiz", fail)
        with pytest.raises(RefusedError, match="broken"):
            draw(site, clock)
    assert draw(site, clock) == [judge_round]
