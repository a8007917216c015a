"""Test that no node loses questions if a part of a site is down for half of an open round.

`make test` kills the web process, once. `BLACKOUTS=2 pytest tests/swarm/test_blackouts.py` kills
each part twice.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from judge.models import Answer, Round, Score, Season, Seat
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from node_client.runtime import answering
from node_client.site import parse_site
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.services import create_node
from tests.local.launcher import LaunchedSite, launched_site, skip_wheel_build
from tests.processes import eventually
from tests.swarm.flock import Flock
from tests.swarm.scenario import PARTS, TASKS, tolerating_outage
from tests.swarm.sites import operating

pytestmark = pytest.mark.swarm

log = logging.getLogger(__name__)

TIMES = int(os.environ.get("BLACKOUTS", "0"))
LOST = [*PARTS] * TIMES if TIMES else ["web"]
NODES = 5
QUESTIONS = 16
OPEN_S = 40
DARK_S = 20
# A node needs 24 s for its answers, which is 60 % of a round.
PACE_S = 1.5


@dataclass(frozen=True)
class Scene:
    """A site with nodes, of which the last one has had no seat in any round yet."""

    site: LaunchedSite
    season: Season
    flock: Flock


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("blackouts")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(answering, "QUESTIONS_AT_ONCE", 1)
        skip_wheel_build(folder / "state")
        site = stack.enter_context(launched_site(folder / "state"))
        stack.enter_context(operating(site, django_db_blocker))
        running = Season.objects.filter(state=Season.State.RUNNING)
        eventually(running.exists, within_s=120, what="the launcher has started its season")
        season = make_season()
        tokens = {f"node-{i}": create_node(name=f"node-{i}")[1] for i in range(NODES)}
        flock = Flock(site=parse_site(site.url), tokens=tokens, folder=make_folder(folder))
        for node in flock.nodes:
            node.pupil.pace_s = PACE_S
        stack.enter_context(flock)
        eventually(lambda: flock.connected == NODES, within_s=180, what="all nodes are connected")
        yield Scene(site, season, flock)


def make_folder(folder: Path) -> Path:
    (folder / "nodes").mkdir()
    return folder / "nodes"


def make_season() -> Season:
    """Start a season of short rounds that the test creates; a node that joins late has to wait."""
    season = Season.objects.create(
        name="Blackouts",
        tasks=msgspec.to_builtins(TASKS),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=OPEN_S,
        scoring_seconds=60,
        late_joiners=Season.LateJoiners.WAIT,
    )
    start_season(season, now=timezone.now())
    return season


@pytest.mark.parametrize(("turn", "part"), list(enumerate(LOST)))
def test_no_node_loses_a_question_in_an_outage(scene: Scene, turn: int, part: str) -> None:
    quiz = make_round(scene.season)
    scene.flock.nodes[-1].ignore_rounds()
    scene.flock.allow_answers(each=QUESTIONS, pause_s=0)
    seats = Seat.objects.filter(round=quiz, offered_at__isnull=False)
    eventually(lambda: seats.count() == NODES - 1, within_s=180, what="all but one have a seat")
    answers = Answer.objects.filter(question__round=quiz)
    eventually(lambda: answers.count() >= NODES - 1, within_s=180, what="answers are received")
    black_out(part, scene)
    closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
    eventually(lambda: tolerating_outage(closed.exists), within_s=180, what="the round is closed")
    counts = count_answers(quiz)
    log.info("%d %s: %s", turn, part, counts)
    assert counts == {f"node-{i}": (QUESTIONS, "") for i in range(NODES)}


def make_round(season: Season) -> Round:
    now = timezone.now()
    with Verifier() as verifier:
        return schedule_round(season, opens_at=now + LEAD_TIME, now=now, verifier=verifier)


def count_answers(quiz: Round) -> dict[str, tuple[int, str]]:
    """Return the number of answered questions of each node, and the reason for missing ones."""
    scores = Score.objects.filter(round=quiz).select_related("node")
    return {
        score.node.name: (
            Answer.objects.filter(question__round=quiz, node=score.node).count(),
            score.reason,
        )
        for score in scores
    }


def black_out(part: str, scene: Scene) -> None:
    """Kill a part, and prevent its restart for a while."""
    pid = scene.site.pid_of(part)
    assert pid is not None
    with frozen(scene.site.launcher.pid):
        os.kill(pid, signal.SIGKILL)
        time.sleep(DARK_S / 2)
        scene.flock.resume_rounds()
        time.sleep(DARK_S / 2)
    eventually(lambda: scene.site.pid_of(part) not in (None, pid), within_s=60, what=f"{part} runs")


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process with SIGSTOP during the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
