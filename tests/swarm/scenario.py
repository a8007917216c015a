"""The scenario of the fault test: SIGKILL for each part of a site during one open round."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from judge.models import Answer, Round, Season, Seat, Window
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from node_client.site import parse_site
from swarm_protocol.messages import TaskChoice
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.services import create_node
from tests.local.launcher import LaunchedSite
from tests.processes import eventually
from tests.swarm.flock import Flock
from tests.swarm.witness import install_witness

Found = TypeVar("Found")
LOST = (OperationalError, InterfaceError)
PARTS = ("worker", "beat", "web", "valkey", "postgres")
NODES = 8
QUESTIONS = 16
# The number of answers of the disturbed node in the second round.
FEW = 5
OPEN_S = 300
SHORT_S = 8
TASKS: list[TaskChoice] = [task for task in STARTER_TASKS if task.dataset in ("chain_sum", "gcd")]


@dataclass(frozen=True)
class Scenario:
    """The results of the scenario, for the tests."""

    flock: Flock
    season: Season
    quiz: Round
    next_quiz: Round
    console: str
    outages: Sequence[timedelta]


def run_scenario(site: LaunchedSite, stack: ExitStack) -> Scenario:
    """Run a flock through the outages, and then play another round without any.

    The flock runs until the stack is closed.
    """
    # The launcher's own season would end this one if it started later.
    running = Season.objects.filter(state=Season.State.RUNNING)
    eventually(running.exists, within_s=120, what="the launcher has started its season")
    season = make_season()
    install_witness()
    tokens = {f"node-{i}": create_node(name=f"node-{i}")[1] for i in range(NODES)}
    folder = Path(stack.enter_context(TemporaryDirectory()))
    flock = stack.enter_context(Flock(site=parse_site(site.url), tokens=tokens, folder=folder))
    eventually(lambda: flock.connected == NODES, within_s=180, what="all nodes are connected")
    quiz = open_round(season)
    outages = [lose(part, site, flock, quiz) for part in PARTS]
    flock.allow_answers(each=QUESTIONS - 3 * len(PARTS))
    await_end(quiz)
    Season.objects.filter(pk=season.pk).update(open_seconds=SHORT_S)
    season.refresh_from_db()
    next_quiz = open_round(season)
    # One node stops answering early, so only the deadline can close this round.
    flock.allow_answers(each=FEW, nodes=flock.nodes[:1], pause_s=0)
    flock.allow_answers(each=QUESTIONS, nodes=flock.nodes[1:], pause_s=0)
    await_end(next_quiz)
    return Scenario(flock, season, quiz, next_quiz, site.console(), outages)


def make_season() -> Season:
    """Start a season of sums whose rounds are created by the test."""
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
    """Create a round, and return it when all nodes have their seats in it."""
    now = timezone.now()
    with Verifier() as verifier:
        quiz = schedule_round(season, opens_at=now + LEAD_TIME, now=now, verifier=verifier)
    seats = Seat.objects.filter(round=quiz, offered_at__isnull=False)
    eventually(lambda: seats.count() == NODES, within_s=180, what="all nodes have a seat")
    return quiz


def await_end(quiz: Round) -> None:
    closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
    eventually(closed.exists, within_s=60, what=f"{quiz} closed by itself")
    counted = quiz.counted.filter(window=Window.SEASON)
    eventually(counted.exists, within_s=30, what="the leaderboard counts it")
    quiz.refresh_from_db()


# ---- outages


def lose(part: str, site: LaunchedSite, flock: Flock, quiz: Round) -> timedelta:
    """Kill a part while some answers wait for grading and others for acknowledgement.

    Returns the time from the kill until the part has recovered: all written answers are
    acknowledged and graded, and the judge ticks.
    """
    pid = site.pid_of(part)
    assert pid is not None
    flock.allow_answers(each=2)
    with stalled(flock, quiz):
        flock.allow_answers(each=1)
        eventually(lambda: flock.are_all_waiting, within_s=30, what="all wait for acknowledgement")
        killed_at = timezone.now()
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: site.pid_of(part) not in (None, pid), within_s=30, what=f"{part} runs again")
    since = timezone.now()
    eventually(
        lambda: is_caught_up(flock, quiz, since=since), within_s=60, what=f"{part} does its work"
    )
    return timezone.now() - killed_at


@contextmanager
def stalled(flock: Flock, quiz: Round) -> Iterator[None]:
    """Block the storage of answers and of grades, starting when there are ungraded answers.

    Both take a shared lock on the round's row. The database itself may be killed meanwhile.
    """
    try:
        with transaction.atomic():
            eventually(
                lambda: lock_if_ungraded(flock, quiz),
                within_s=30,
                what="answers wait for their grades",
            )
            yield
    except LOST:
        connection.close()


def lock_if_ungraded(flock: Flock, quiz: Round) -> bool:
    """Lock the round if acknowledged answers wait for grading, and return whether it is locked."""
    before = transaction.savepoint()
    Round.objects.select_for_update().get(pk=quiz.pk)
    if ungraded(quiz) & flock.acked:
        return True
    transaction.savepoint_rollback(before)  # Releases the lock.
    return False


def is_caught_up(flock: Flock, quiz: Round, *, since: datetime) -> bool:
    if len(flock.acked) < flock.allowed:
        return False
    ticked = Season.objects.filter(pk=quiz.season_id, watched_at__gt=since)
    return bool(tolerating_outage(lambda: not ungraded(quiz) and ticked.exists()))


def ungraded(quiz: Round) -> set[tuple[str, str]]:
    """Return the stored answers without a grade, as node and question."""
    waiting = Answer.objects.filter(question__round=quiz, score=None)
    return {(name, str(pk)) for name, pk in waiting.values_list("node__name", "question_id")}


def tolerating_outage(find: Callable[[], Found]) -> Found | None:
    """Return the result of `find`, or None while the database is unavailable."""
    try:
        return find()
    except LOST:
        connection.close()
        return None
