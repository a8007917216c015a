"""Test filters, pages and search of the leaderboard: no reload, shareable, without JavaScript."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, Page, expect

from judge.models import Season
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor, visiting
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import close_round, open_round_for
from tests.factories import make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
ROWS = "tbody[data-rows] tr"


def prepare(count: int = 55) -> tuple[Season, list[Node]]:
    """Create a season with more nodes than fit on a page; the last ones are the worst."""
    season = make_season("Autumn")
    return season, judge_nodes(season, count=count, rounds=1)


@pytest_asyncio.fixture(loop_scope="session")
async def plain(transactional_db: None, site: str, browser: Browser) -> AsyncIterator[Page]:
    """A page of a browser without JavaScript."""
    async with visiting(browser, site, scripts=False) as visitor:
        yield visitor.page


async def test_filters_and_pages_replace_the_board_and_survive_a_reload(visitor: Visitor) -> None:
    _, nodes = await sync_to_async(prepare)()
    page = visitor.page
    await visitor.open("/leaderboard/")
    await page.evaluate("window.sameDocument = true")
    await page.get_by_role("link", name="Next 50").click()
    await expect(page.locator(ROWS)).to_have_count(5)
    await page.get_by_label("Name contains").fill(nodes[0].name)
    await page.get_by_role("button", name="Filter").click()
    await expect(page.locator(ROWS)).to_have_count(1)
    assert await page.evaluate("window.sameDocument")
    assert page.url == f"{visitor.site}/leaderboard/?window=season&search={nodes[0].name}"
    # The language menu, which was not replaced, links to the same filters.
    persian = page.locator(".menu a[hreflang=fa]")
    wanted = f"?window=season&search={nodes[0].name}&lang=fa"
    await expect(persian).to_have_attribute("href", re.compile(re.escape(wanted) + "$"))

    await page.reload()

    await expect(page.locator(ROWS)).to_have_count(1)
    await expect(page.get_by_label("Name contains")).to_have_value(nodes[0].name)
    assert visitor.complaints == []


async def test_socket_follows_the_filters_of_the_board(visitor: Visitor) -> None:
    season, nodes = await sync_to_async(prepare)()
    await sync_to_async(open_round_for)(season, nodes[0])
    await visitor.open("/leaderboard/")
    page = visitor.page
    await page.get_by_label("Name contains").fill(nodes[0].name)
    await page.get_by_role("button", name="Filter").click()
    await expect(page.locator(ROWS)).to_have_count(1)
    await page.wait_for_selector("#link.live")
    score = page.locator(f"tr[data-node={nodes[0].name}] data")
    await expect(score).to_have_attribute("value", "1.0")

    await sync_to_async(close_round)()

    await expect(score).not_to_have_attribute("value", "1.0")
    await expect(page.locator(ROWS)).to_have_count(1)
    assert visitor.complaints == []


async def test_search_scrolls_the_found_row_into_view(visitor: Visitor) -> None:
    _, nodes = await sync_to_async(prepare)()
    await visitor.open("/leaderboard/")
    page = visitor.page
    await page.get_by_label("Find my node").fill(nodes[40].name)
    await page.get_by_role("button", name="Find").click()
    found = page.locator("#found")
    await expect(found).to_have_attribute("data-node", nodes[40].name)
    await expect(found).to_be_in_viewport()
    await page.get_by_label("Find my node").fill("no-such-node")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("No node has this name.")).to_be_visible()
    assert visitor.complaints == []


async def test_board_works_without_javascript(site: str, plain: Page) -> None:
    _, nodes = await sync_to_async(prepare)()
    await plain.goto(f"{site}/leaderboard/")
    await plain.get_by_role("link", name="Next 50").click()
    await expect(plain.locator(ROWS)).to_have_count(5)
    await plain.get_by_role("link", name="last round").click()
    await expect(plain.locator(ROWS)).to_have_count(50)
    await plain.get_by_label("Find my node").fill(nodes[40].name)
    await plain.get_by_role("button", name="Find").click()
    await expect(plain.locator("#found")).to_be_in_viewport()
    await plain.get_by_label("Arm").select_option("isolated")
    await plain.get_by_role("button", name="Filter").click()
    await expect(plain.get_by_text("No node matches")).to_be_visible()
    await plain.goto(site)
    await expect(plain.locator(ROWS)).to_have_count(5)


async def test_focus_remains_on_a_changed_filter(visitor: Visitor) -> None:
    await sync_to_async(prepare)()
    page = visitor.page
    await visitor.open("/leaderboard/")
    arm = page.locator("select[name=arm]")
    await arm.focus()
    await arm.select_option("isolated")
    await expect(page.get_by_role("link", name="Clear the filters")).to_be_visible()
    await expect(page.locator("select[name=arm]")).to_be_focused()
