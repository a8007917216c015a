"""The pages of a whole swarm: real web, worker and beat, and real nodes that train and answer."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import expect

from judge.models import Round, Season
from judge.services.scheduling import LEAD, schedule_round
from judge.services.seasons import start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor
from tests.processes import eventually
from tests.swarm.sites import join, running_site

pytestmark = [pytest.mark.browser, pytest.mark.swarm, pytest.mark.asyncio(loop_scope="session")]

# By name, with their arms.
NODES = {"amber": "swarm", "birch": "isolated"}


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[str]:
    with running_site(tmp_path) as url:
        yield url


@pytest.fixture
def season(transactional_db: None) -> Season:
    season = Season.objects.create(
        name="Two nodes",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        questions_per_round=8,
        cadence_seconds=0,
        open_seconds=180,
        scoring_seconds=30,
        max_new_tokens=24,
    )
    start_season(season, now=timezone.now())
    return season


@pytest.fixture
def nodes(site: str, season: Season, tmp_path: Path) -> Iterator[None]:
    with ExitStack() as running:
        for name, arm in NODES.items():
            running.enter_context(join(name, arm, site=site, folder=tmp_path))
        connected = Node.objects.connected(now=timezone.now())
        eventually(lambda: connected.count() == len(NODES), within_s=120, what="nodes connected")
        yield


def schedule(season: Season) -> Round:
    now = timezone.now()
    with Verifier() as verifier:
        return schedule_round(season, opens_at=now + LEAD, now=now, verifier=verifier)


@pytest.mark.usefixtures("nodes")
async def test_scores_of_real_nodes_land_by_themselves_and_stand_alike_everywhere(
    visitor: Visitor, season: Season
) -> None:
    page = visitor.page
    await visitor.open("/leaderboard/")

    quiz = await sync_to_async(schedule)(season)

    for name in NODES:
        await expect(page.locator(f"tr[data-node={name}] data")).to_be_visible(timeout=120_000)
    paths = [
        *(f"/nodes/{name}/" for name in NODES),
        *("/", "/rounds/", "/compare/", "/rollouts/", "/tasks/", "/status/"),
        quiz.get_absolute_url(),
    ]
    for path in paths:
        await visitor.open(path)
    assert visitor.complaints == []

    told = await page.request.get(f"{visitor.site}/rounds/{quiz.number}/rewards.csv")
    rewards = {
        row["node"]: row["score"] for row in csv.DictReader((await told.text()).splitlines())
    }
    assert set(rewards) == set(NODES)
    for name, score in rewards.items():
        row = page.locator("#sheet table").first.locator("tbody tr", has_text=name)
        shown = await row.locator("data").first.get_attribute("value")
        assert float(shown or "nan") == float(score)
