"""Test a complete swarm: web, worker and beat, three real nodes that train, and a visitor."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.db.models import Count, F, Sum
from django.utils import timezone
from playwright.async_api import expect

from judge.models import Answer, Round, Score, Season, Seat
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.relay.models import (
    ArchivedRollout,
    Contribution,
    Exchange,
    Learned,
    TrainingPoint,
)
from tests.browser.conftest import Visitor
from tests.processes import eventually
from tests.swarm.sites import join, running_site

pytestmark = [pytest.mark.browser, pytest.mark.swarm, pytest.mark.asyncio(loop_scope="session")]

# Names and arms.
NODES = {"amber": "swarm", "bold": "swarm", "calm": "isolated"}
SWARM = {"amber", "bold"}
QUESTIONS = 8


@dataclass
class Swarm:
    """The running nodes of a site, and a method that restarts one of them."""

    site: str
    folder: Path
    processes: ExitStack
    running: dict[str, BaseProcess] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a node, which continues from its saved state."""
        node = join(name, NODES[name], site=self.site, folder=self.folder)
        self.running[name] = self.processes.enter_context(node)


@pytest.fixture
def season(transactional_db: None) -> Season:
    season = Season.objects.create(
        name="Three nodes",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=180,
        scoring_seconds=30,
        max_new_tokens=24,
    )
    start_season(season, now=timezone.now())
    return season


@pytest.fixture
def site(season: Season, tmp_path: Path) -> Iterator[str]:
    # With the default limits it takes a minute until another node has used an archived
    # rollout.
    archive = {"RELAY_ARCHIVE_PER_MINUTE": "300", "RELAY_ARCHIVE_PER_NODE": "100"}
    with running_site(tmp_path, **archive) as url:
        yield url


@pytest.fixture
def swarm(site: str, tmp_path: Path) -> Iterator[Swarm]:
    with ExitStack() as processes:
        swarm = Swarm(site, tmp_path, processes)
        for name in NODES:
            swarm.start(name)
        connected = Node.objects.connected(now=timezone.now())
        eventually(
            lambda: connected.count() == len(NODES), within_s=120, what="all nodes are connected"
        )
        yield swarm


async def test_round_completes_and_nothing_is_counted_twice_if_a_node_is_killed(
    swarm: Swarm, visitor: Visitor, season: Season
) -> None:
    await visitor.open("/leaderboard/")
    quiz = await sync_to_async(play_round)(swarm, season)
    for name in NODES:
        score = visitor.page.locator(f"tr[data-node={name}] data")
        await expect(score).to_be_visible(timeout=60_000)
    await sync_to_async(check_answers)()
    await sync_to_async(await_learning)()
    swarm.processes.close()
    await check_pages(visitor, quiz)
    await sync_to_async(check_credits)()


def play_round(swarm: Swarm, season: Season) -> Round:
    """Play a round in which a node is killed after it took its seat, and restarted."""
    now = timezone.now()
    with Verifier() as verifier:
        quiz = schedule_round(season, opens_at=now + LEAD_TIME, now=now, verifier=verifier)
    seats = Seat.objects.filter(round=quiz, node__name="amber", offered_at__isnull=False)
    eventually(seats.exists, within_s=180, what="amber has a seat")
    swarm.running["amber"].kill()
    swarm.running["amber"].join()
    swarm.start("amber")
    closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
    eventually(closed.exists, within_s=170, what="the round closed")
    assert closed.filter(closed_at__lt=F("score_by")).exists()
    return quiz


def check_answers() -> None:
    """Check that each node answered every question once and has one score."""
    twice = Answer.objects.values("question", "node").annotate(k=Count("id")).filter(k__gt=1)
    assert not twice.exists()
    assert Answer.objects.count() == len(NODES) * QUESTIONS
    expected = [("scored", QUESTIONS)] * len(NODES)
    assert list(Score.objects.values_list("status", "n")) == expected


def await_learning() -> None:
    """Wait until two nodes have used external rollouts and the third has trained alone."""
    used = Contribution.objects.filter(external_used__gt=0)
    learned = Learned.objects.filter(rollout__in=ArchivedRollout.objects.verified())

    alone = TrainingPoint.objects.filter(node__name="calm")

    def have_learned() -> bool:
        return alone.exists() and all(
            set(rows.values_list("node__name", flat=True)) == SWARM for rows in (used, learned)
        )

    eventually(have_learned, within_s=120, what="all have trained")


async def check_pages(visitor: Visitor, quiz: Round) -> None:
    """Check that all pages open without errors, and that the round's page equals its CSV."""
    page = visitor.page
    for path in (
        *(f"/nodes/{name}/" for name in NODES),
        *("/", "/rounds/", "/compare/", "/rollouts/", "/tasks/", "/status/"),
        quiz.get_absolute_url(),
    ):
        await visitor.open(path)
    assert visitor.complaints == []
    answer = await page.request.get(f"{visitor.site}/rounds/{quiz.number}/rewards.csv")
    rewards = {
        row["node"]: row["score"] for row in csv.DictReader((await answer.text()).splitlines())
    }
    assert set(rewards) == set(NODES)
    for name, score in rewards.items():
        row = page.locator("#sheet table").first.locator("tbody tr", has_text=name)
        shown = await row.locator("data").first.get_attribute("value")
        assert float(shown or "nan") == float(score)


def check_credits() -> None:
    """Check that credit is given only for used external rollouts, and not for more."""
    learned = Learned.objects.filter(rollout__in=ArchivedRollout.objects.verified())
    assert not learned.filter(node=F("rollout__author")).exists()
    assert not Contribution.objects.get(node__name="calm").external_used
    assert not Exchange.objects.filter(taker__name="calm").exists()
    # The credit of a pair of nodes is limited per minute, and refuted rollouts give none.
    credited = Contribution.objects.aggregate(total=Sum("used_by_others"))["total"]
    assert 0 < credited <= Exchange.objects.aggregate(total=Sum("used"))["total"]
    assert TrainingPoint.objects.filter(node__name="calm", reflection__has_key="recheck").exists()
