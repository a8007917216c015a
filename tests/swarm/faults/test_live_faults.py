"""Test faults of a site and its network while nodes train and are judged.

Each fault starts when every node has its questions and has not submitted its answers. `make test`
keeps the faults short; `FAULTS=1 pytest tests/swarm/faults` freezes Valkey for 20 s and cuts the
network for 30 s without closing any connection.
"""

import logging
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Self

import msgspec
import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from judge.models import Answer, Round, Score, Season, Seat
from judge.services.scheduling import schedule_round
from judge.services.seasons import start_season
from node_client.site import parse_site
from swarm_record.answers import hash_text
from swarm_tasks.verifier import Verifier
from swarm_web.core.store import sync_redis
from swarm_web.nodes.services import create_node
from tests.processes import eventually
from tests.swarm.faults.broken_site import WEB, BrokenSite, broken_site
from tests.swarm.faults.cable import Cable, laid_cable
from tests.swarm.learners import Learners, Pace
from tests.swarm.scenario import TASKS

pytestmark = [pytest.mark.swarm, pytest.mark.django_db]

log = logging.getLogger(__name__)

IS_LONG = os.environ.get("FAULTS") == "1"
PAUSED_S = 20.0 if IS_LONG else 3.0
CUT_S = 30.0 if IS_LONG else 3.0
AWAY_S = 20.0 if IS_LONG else 2.0
# The steps that every node must make during a fault, and the limit for them.
STEPS = 2
STEPS_WITHIN_S = 30.0
JUMP_S = 3600.0
BACK_WITHIN_S = 60.0
# One of the nodes has its own proxy; the others share one to both web processes.
NODES = ("far", "amber", "bold", "calm")
QUESTIONS = 8
# Every deadline is far beyond the test: a round that closes earlier was answered by all nodes.
OPEN_S = 300
PACE = Pace(step_s=0.4, answer_s=0.15)


@dataclass(frozen=True)
class Scene:
    """Nodes that train in a running season."""

    site: BrokenSite
    season: Season
    learners: Learners
    far: Cable
    verifier: Verifier


@pytest.fixture(scope="module")
def scene(committed_rows: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("faults")
    season = make_season()
    tokens = {name: create_node(name=name)[1] for name in NODES}
    with ExitStack() as stack:
        site = stack.enter_context(broken_site(folder))
        far, near = (stack.enter_context(laid_cable(site.ports)) for _ in range(2))
        cables = dict.fromkeys(NODES, near) | {"far": far}
        verifier = stack.enter_context(Verifier())
        learners = Learners(
            tokens=tokens,
            sites=lambda name: parse_site(cables[name].url),
            folder=folder / "nodes",
            verifier=verifier,
            pace=PACE,
        )
        # The doorbells of this process must reach the site's own Valkey.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(settings, "REDIS_URL", site.redis_url)
        sync_redis.cache_clear()
        stack.callback(sync_redis.cache_clear)
        stack.enter_context(learners)
        await_all_connected(learners)
        yield Scene(site, season, learners, far, verifier)


def make_season() -> Season:
    """Start a season of sums whose rounds are created by the test."""
    season = Season.objects.create(
        name="Faults",
        tasks=msgspec.to_builtins(TASKS),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=OPEN_S,
        scoring_seconds=OPEN_S,
        completions=4,
        local=2,
        external=2,
        batch=2,
        max_new_tokens=16,
    )
    start_season(season, now=timezone.now())
    return season


def await_all_connected(learners: Learners) -> None:
    eventually(
        lambda: learners.connected == len(NODES), within_s=BACK_WITHIN_S, what="all are connected"
    )


# ---- the faults; each returns when the site and the network work again


def sustain(scene: Scene, seconds: float) -> None:
    """Let a fault last for some time, and until every node has made steps during it."""
    began = scene.learners.steps
    time.sleep(seconds)
    eventually(
        lambda: all(
            now >= then + STEPS for now, then in zip(scene.learners.steps, began, strict=True)
        ),
        within_s=STEPS_WITHIN_S,
        what="every node trains during the fault",
    )


def empty_valkey(scene: Scene) -> None:
    scene.site.kill("valkey")
    sustain(scene, AWAY_S)
    scene.site.empty_valkey()
    scene.site.start("valkey")


def freeze_valkey(scene: Scene) -> None:
    with scene.site.frozen("valkey"):
        sustain(scene, PAUSED_S)


def kill_one_web_process(scene: Scene) -> None:
    scene.site.kill(WEB[0])
    sustain(scene, AWAY_S)
    scene.site.start(WEB[0])


def kill_all_web_processes(scene: Scene) -> None:
    for name in WEB:
        scene.site.kill(name)
    sustain(scene, AWAY_S)
    for name in WEB:
        scene.site.start(name)


def cut_the_network(scene: Scene) -> None:
    scene.far.cut()
    sustain(scene, CUT_S)
    scene.far.mend()
    if not IS_LONG:
        # Without a reset a node detects the dead connection within 40 s.
        scene.far.reset()


def jump_at_the_nodes(scene: Scene) -> None:
    """Set the nodes' wall clock an hour ahead, and back again."""
    modules = [module for name, module in sys.modules.items() if name.startswith("node_client.")]
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            if getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", LaterTime)
        sustain(scene, AWAY_S)


class LaterTime(datetime):
    """The nodes' `datetime` while their clock is ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return a time that is an hour ahead."""
        return super().now(tz) + timedelta(seconds=JUMP_S)


def jump_back(scene: Scene) -> None:
    scene.site.set_clock(ahead_s=-JUMP_S)
    sustain(scene, AWAY_S)


def jump_ahead(scene: Scene) -> None:
    """Set the clock to the right time again after `jump_back`."""
    scene.site.set_clock(ahead_s=0)
    sustain(scene, AWAY_S)


FAULTS: list[Callable[[Scene], None]] = [
    empty_valkey,
    freeze_valkey,
    kill_one_web_process,
    kill_all_web_processes,
    cut_the_network,
    jump_at_the_nodes,
    jump_back,
    jump_ahead,
]


@dataclass(frozen=True)
class Outcome:
    """The state of nodes and answers after a fault; answers by node, question and hash."""

    metrics: str
    scores: dict[str, tuple[int, str]]
    stored: set[tuple[str, str, str]]
    receipted: set[tuple[str, str, str]]


@pytest.fixture(scope="module", params=FAULTS, ids=lambda fault: fault.__name__)
def outcome(
    scene: Scene, request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker
) -> Outcome:
    """Cause one fault; every node must continue to train during it.

    Its round must close, and nodes must share and use rollouts again after it.
    """
    with django_db_blocker.unblock():
        quiz = open_round(scene)
        request.param(scene)
        mended_at = time.monotonic()
        await_recovery(scene.learners)
        took = time.monotonic() - mended_at
        log.warning("%s: all are back %.1f s later", request.param.__name__, took)
        closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
        eventually(closed.exists, within_s=BACK_WITHIN_S, what="the round closed by itself")
        return Outcome(
            fetch_metrics(scene.site), count_graded(quiz), stored(quiz), receipted(scene, quiz)
        )


def await_recovery(learners: Learners) -> None:
    """Wait until every node is connected and has shared rollouts and used external ones since."""
    await_all_connected(learners)
    then = [(node.view.published, node.external_used) for node in learners.nodes]
    eventually(
        lambda: all(
            node.view.published > published and node.external_used > used
            for node, (published, used) in zip(learners.nodes, then, strict=True)
        ),
        within_s=BACK_WITHIN_S,
        what="all share and use rollouts again",
    )


def open_round(scene: Scene) -> Round:
    """Create a round, and return it when all nodes have their questions."""
    now = scene.site.now()
    quiz = schedule_round(scene.season, opens_at=now, now=now, verifier=scene.verifier)
    seats = Seat.objects.filter(round=quiz, offered_at__isnull=False)
    eventually(lambda: seats.count() == len(NODES), within_s=180, what="all nodes have a seat")
    return quiz


def fetch_metrics(site: BrokenSite) -> str:
    with urllib.request.urlopen(f"{site.url}/metrics", timeout=30) as response:
        body: bytes = response.read()
    return body.decode()


def count_graded(quiz: Round) -> dict[str, tuple[int, str]]:
    """Return the number of graded answers of each node, and the reason for missing ones."""
    graded = Answer.objects.filter(question__round=quiz, score__isnull=False)
    return {
        score.node.name: (graded.filter(node=score.node).count(), score.reason)
        for score in Score.objects.filter(round=quiz).select_related("node")
    }


def stored(quiz: Round) -> set[tuple[str, str, str]]:
    """Return the stored answers by node, question and hash."""
    answers = Answer.objects.filter(question__round=quiz).select_related("node")
    return {
        (answer.node.name, str(answer.question_id), hash_text(answer.text)) for answer in answers
    }


def receipted(scene: Scene, quiz: Round) -> set[tuple[str, str, str]]:
    """Return the answers for which nodes have genuine receipts."""
    return {
        (entry.node, entry.question, entry.text_hash)
        for node in scene.learners.nodes
        for receipt in node.receipts()
        if receipt.round == quiz.number and receipt.is_genuine
        for entry in receipt.answers
    }


def test_every_question_is_answered_and_graded(outcome: Outcome) -> None:
    assert outcome.scores == dict.fromkeys(NODES, (QUESTIONS, ""))


def test_nodes_have_receipts_of_exactly_the_stored_answers(outcome: Outcome) -> None:
    assert outcome.receipted == outcome.stored


@pytest.mark.parametrize("outcome", [empty_valkey], indirect=True, ids=["empty_valkey"])
def test_rollouts_not_replicated_during_an_outage_of_valkey_are_counted(outcome: Outcome) -> None:
    assert 'swarm_relay_total{code="not_replicated"}' in outcome.metrics
