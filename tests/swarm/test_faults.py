"""A launched site loses each of its parts to SIGKILL in one open round, and nothing is lost by it.

The outages are one story, told once; each test looks at one side of what is left.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from judge.engine import lost_time
from judge.models import Answer, Round, Score, Season, Seat, Standing, Window
from judge.services.scheduling import LEAD, schedule_round
from judge.services.seasons import start_season
from node_client import exam
from node_client.site import parse_site
from swarm_protocol.messages import TaskChoice
from swarm_tasks.marks import mark
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.local.stamps import fingerprint
from swarm_web.nodes.services import create_node
from tests.local.launcher import LaunchedSite, launched_site
from tests.processes import PROJECT, eventually
from tests.swarm.flock import WRONG, Flock
from tests.swarm.sites import operating
from tests.swarm.witness import call_witness, witnessed

pytestmark = pytest.mark.swarm

Found = TypeVar("Found")
LOST = (OperationalError, InterfaceError)
PARTS = ("worker", "beat", "web", "valkey", "postgres")
NODES = 8
QUESTIONS = 16
OPEN_S = 300
SHORT_S = 8
TASKS: list[TaskChoice] = [task for task in STARTER_TASKS if task.dataset in ("chain_sum", "gcd")]


@dataclass(frozen=True)
class Story:
    """What there is to look at when all is over."""

    site: LaunchedSite
    flock: Flock
    season: Season
    quiz: Round
    next_quiz: Round
    console: str


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Story]:
    """Kill every part of a site in one round, then hold another one as if nothing had been."""
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        # One answer at a time, as a large model would write them.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(exam, "QUESTIONS_AT_ONCE", 1)
        spare_wheel(folder / "state")
        site = stack.enter_context(launched_site(folder / "state"))
        stack.enter_context(operating(site, django_db_blocker))
        yield tell_story(site, stack)


def spare_wheel(state: Path) -> None:
    """Let the launcher think that it has built the client's wheel: nobody installs it here."""
    state.mkdir()
    (state / "dist.stamp").write_text(fingerprint([PROJECT / "node_client"]))


def tell_story(site: LaunchedSite, stack: ExitStack) -> Story:
    # The launcher's own season would end ours if it came later.
    eventually(Season.objects.exists, within_s=60, what="the launcher has made its season")
    season = make_season()
    call_witness()
    tokens = {f"node-{i}": create_node(name=f"node-{i}")[1] for i in range(NODES)}
    flock = stack.enter_context(Flock(url=parse_site(site.url).socket, tokens=tokens))
    eventually(lambda: flock.connected == NODES, within_s=60, what="all nodes are connected")
    quiz = open_round(season)
    for part in PARTS:
        lose(part, site, flock, quiz)
    flock.hand_in(each=QUESTIONS - 3 * len(PARTS))
    await_end(quiz)
    Season.objects.filter(pk=season.pk).update(open_seconds=SHORT_S)
    season.refresh_from_db()
    next_quiz = open_round(season)
    # One node loses its way: nothing but the deadline can end this round.
    flock.hand_in(each=5, nodes=flock.nodes[:1], pause_s=0)
    flock.hand_in(each=QUESTIONS, nodes=flock.nodes[1:], pause_s=0)
    await_end(next_quiz)
    return Story(site, flock, season, quiz, next_quiz, site.console())


def make_season() -> Season:
    """Start a season of sums whose rounds are made by hand."""
    season = Season.objects.create(
        name="Outages",
        tasks=msgspec.to_builtins(TASKS),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=OPEN_S,
        scoring_seconds=60,
    )
    start_season(season, now=timezone.now())
    return season


def open_round(season: Season) -> Round:
    """Make a round, and return it once all nodes have their seats in it."""
    now = timezone.now()
    with Verifier() as verifier:
        quiz = schedule_round(season, opens_at=now + LEAD, now=now, verifier=verifier)
    seats = Seat.objects.filter(round=quiz, offered_at__isnull=False)
    eventually(lambda: seats.count() == NODES, within_s=60, what="all nodes sit in the round")
    return quiz


def await_end(quiz: Round) -> None:
    closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
    eventually(closed.exists, within_s=60, what=f"{quiz} closed by itself")
    standings = Standing.objects.filter(season=quiz.season, window=Window.ROUND)
    eventually(standings.exists, within_s=30, what="the leaderboard has it")
    quiz.refresh_from_db()


# ---- outages


def lose(part: str, site: LaunchedSite, flock: Flock, quiz: Round) -> None:
    """Kill a part while acknowledged answers wait for grades, and others for acknowledgement.

    Returns when it is back: when all that was written is acknowledged and graded, and the judge's
    clock ticks.
    """
    pid = site.pid_of(part)
    assert pid is not None
    flock.hand_in(each=2)
    with stalled(flock, quiz):
        flock.hand_in(each=1)
        eventually(lambda: flock.are_all_waiting, within_s=30, what="all wait for acknowledgement")
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: site.pid_of(part) not in (None, pid), within_s=30, what=f"{part} runs again")
    since = timezone.now()
    eventually(
        lambda: is_caught_up(flock, quiz, since=since), within_s=60, what=f"{part} does its work"
    )


@contextmanager
def stalled(flock: Flock, quiz: Round) -> Iterator[None]:
    """Let no answer be stored and no grade be written, from when there are ungraded answers.

    Both take a shared lock on the round's row. The database itself may be killed meanwhile.
    """
    try:
        with transaction.atomic():
            eventually(
                lambda: hold_ungraded(flock, quiz),
                within_s=30,
                what="answers wait for their grades",
            )
            yield
    except LOST:
        connection.close()


def hold_ungraded(flock: Flock, quiz: Round) -> bool:
    """Lock the round if acknowledged answers wait for their grades; tell whether that is so."""
    before = transaction.savepoint()
    Round.objects.select_for_update().get(pk=quiz.pk)
    if ungraded(quiz) & flock.acked:
        return True
    transaction.savepoint_rollback(before)  # Which gives the lock back.
    return False


def is_caught_up(flock: Flock, quiz: Round, *, since: datetime) -> bool:
    if len(flock.acked) < flock.allowed:
        return False
    ticked = Season.objects.filter(pk=quiz.season_id, watched_at__gt=since)
    return bool(patiently(lambda: not ungraded(quiz) and ticked.exists()))


def ungraded(quiz: Round) -> set[tuple[str, str]]:
    """Return the stored answers without a grade, as node and question."""
    waiting = Answer.objects.filter(question__round=quiz, score=None)
    return {(name, str(pk)) for name, pk in waiting.values_list("node__name", "question_id")}


def patiently(find: Callable[[], Found]) -> Found | None:
    """Return what `find` finds, None while the database is away."""
    try:
        return find()
    except LOST:
        connection.close()
        return None


# ---- what is left


def answers_to(quiz: Round) -> list[Answer]:
    answers = Answer.objects.filter(question__round=quiz).select_related("question", "node")
    return list(answers.order_by("node", "question__position"))


def scores_of(quiz: Round) -> list[Score]:
    return list(Score.objects.filter(round=quiz).select_related("node").order_by("node"))


def phases_of(quiz: Round) -> list[str | None]:
    return [seen.after for seen in witnessed("judge_round") if seen.subject == str(quiz.pk)]


def test_the_round_closed_by_itself_when_all_was_answered_and_graded(story: Story) -> None:
    assert phases_of(story.quiz) == ["open", "scoring", "closed"]
    assert story.quiz.closed_at is not None
    assert story.quiz.closed_at < story.quiz.closes_at


def test_what_was_acknowledged_is_stored_as_it_was_sent_and_nothing_else(story: Story) -> None:
    stored = {
        (answer.node.name, str(answer.question_id)): answer.text
        for quiz in (story.quiz, story.next_quiz)
        for answer in answers_to(quiz)
    }
    acked = story.flock.acked
    assert len(acked) == NODES * QUESTIONS + (NODES - 1) * QUESTIONS + 5
    assert stored == {place: story.flock.sent[place] for place in acked}
    assert not story.flock.rejected


def test_every_answer_was_stored_once_and_scored_once(story: Story) -> None:
    seen = witnessed("judge_answer")
    changes = Counter((one.subject, one.done) for one in seen)
    answers = [str(answer.pk) for answer in answers_to(story.quiz)]
    assert len(answers) == NODES * QUESTIONS
    for pk in answers:
        assert (changes[pk, "INSERT"], changes[pk, "UPDATE"], changes[pk, "DELETE"]) == (1, 1, 0)


def test_each_answer_has_the_score_that_it_deserves(story: Story) -> None:
    for answer in answers_to(story.quiz):
        assert answer.solved == (answer.text != WRONG), answer.question.prompt


def test_scores_are_what_the_answers_come_to(story: Story) -> None:
    for quiz in (story.quiz, story.next_quiz):
        datasets = list(quiz.questions.order_by("position").values_list("dataset", flat=True))
        solved = {
            (answer.node_id, answer.question.position): answer.solved for answer in answers_to(quiz)
        }
        scores = scores_of(quiz)
        assert len(scores) == NODES
        for score in scores:
            marks = mark(
                (dataset, bool(solved.get((score.node_id, position))))
                for position, dataset in enumerate(datasets, start=1)
            )
            assert (score.score, score.correct, score.n) == (marks.score, marks.correct, QUESTIONS)
            assert score.cells == {name: list(cell) for name, cell in marks.cells.items()}


def test_scores_were_written_once(story: Story) -> None:
    written = Counter(seen.done for seen in witnessed("judge_score"))
    assert written == {"INSERT": 2 * NODES}


def test_deadlines_moved_by_the_time_that_was_lost_and_no_more(story: Story) -> None:
    opened, ended = (
        seen.place
        for seen in witnessed("judge_round")
        if seen.subject == str(story.quiz.pk) and seen.after in ("open", "scoring")
    )
    ticks = [
        (datetime.fromisoformat(seen.before or ""), datetime.fromisoformat(seen.after or ""))
        for seen in witnessed("judge_season")
        if seen.subject == str(story.season.pk) and opened < seen.place < ended
    ]
    lost = sum((lost_time(before, now=now) for before, now in ticks), timedelta(0))
    assert len(ticks) > len(PARTS)
    assert story.quiz.closes_at == story.quiz.opens_at + timedelta(seconds=OPEN_S) + lost


def test_all_nodes_stand_in_every_window_of_the_leaderboard(story: Story) -> None:
    for window in Window:
        standings = Standing.objects.filter(season=story.season, window=window)
        assert standings.count() == NODES, window


def test_the_next_round_opens_and_closes_as_ever(story: Story) -> None:
    assert phases_of(story.next_quiz) == ["open", "scoring", "closed"]
    reasons = [score.reason for score in scores_of(story.next_quiz)]
    assert reasons == [Score.Reason.UNANSWERED] + [Score.Reason.NONE] * (NODES - 1)


@pytest.mark.parametrize("part", PARTS)
def test_a_lost_part_was_started_once_more_and_the_console_says_so(story: Story, part: str) -> None:
    assert story.console.count(f"] {part} was killed by SIGKILL") == 1
    assert story.console.count(f"] {part} is started again") == 1


def test_outages_are_told_in_lines_and_not_in_tracebacks(story: Story) -> None:
    assert "Traceback" not in story.console
    assert len(story.console.splitlines()) < 300


def test_an_acknowledged_answer_is_on_the_disk(story: Story) -> None:
    with connection.cursor() as cursor:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("on",), name
