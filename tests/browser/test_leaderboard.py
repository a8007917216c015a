"""Test that the leaderboard changes without reload when a round closes, like the download."""

import asyncio
import csv
from io import StringIO
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import expect

from judge.models import Season
from judge.services.oversight import quarantine_node
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import close_round, open_round_for
from tests.factories import make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def prepare() -> tuple[Season, list[Node]]:
    """Create a season with two judged nodes and a round that is ready to be closed."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=2)
    open_round_for(season, nodes[0])
    return season, nodes


async def test_score_changes_without_reload_and_equals_the_csv(visitor: Visitor) -> None:
    _, nodes = await sync_to_async(prepare)()
    page = visitor.page
    await visitor.open("/leaderboard/")
    score = page.locator(f"tr[data-node={nodes[0].name}] data")
    await expect(score).to_have_attribute("value", "1.0")
    await page.evaluate("window.sameDocument = true")

    await sync_to_async(close_round)()

    await expect(score).to_have_attribute("value", "0.8888888888888888")
    await expect(page.locator("tbody[data-rows] tr").first).to_have_attribute(
        "data-node", nodes[1].name
    )
    assert await page.evaluate("window.sameDocument")

    async with page.expect_download() as download:
        await page.get_by_role("link", name="rewards.csv").click()
    saved = Path(await (await download.value).path())
    rows = list(csv.DictReader(StringIO(await asyncio.to_thread(saved.read_text))))
    mine = [row for row in rows if row["node"] == nodes[0].name]
    solved = sum(round(float(row["score"]) * int(row["n"])) for row in mine)
    asked = sum(int(row["n"]) for row in mine)
    assert solved / asked == float(await score.get_attribute("value") or "nan")
    assert visitor.complaints == []


async def test_first_score_replaces_the_empty_board(visitor: Visitor) -> None:
    season = await sync_to_async(make_season)("Autumn")
    (node,) = await sync_to_async(judge_nodes)(season, count=1, rounds=0)
    await sync_to_async(open_round_for)(season, node)
    await visitor.open("/leaderboard/")
    await expect(visitor.page.locator("#board")).to_contain_text("No round has closed")

    await sync_to_async(close_round)()

    await expect(visitor.page.locator(f"tr[data-node={node.name}] data")).to_have_text(".000")
    await visitor.page.wait_for_selector("#plot[data-drawn]")
    assert visitor.complaints == []


async def test_quarantined_node_is_removed_from_the_board_without_reload(visitor: Visitor) -> None:
    _, (amber, bold) = await sync_to_async(prepare)()
    await visitor.open("/leaderboard/")
    quarantine = sync_to_async(quarantine_node)

    await quarantine(bold, reason="copies", actor=None, now=timezone.now())

    await expect(visitor.page.locator("tbody[data-rows] tr")).to_have_count(1)
    await expect(visitor.page.locator(f"tr[data-node={amber.name}] .rank")).to_have_text("1")
    await expect(visitor.page.locator("#quarantined")).to_have_text(
        "1 quarantined node is not shown."
    )
    assert visitor.complaints == []
