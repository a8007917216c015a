"""Test charts, theme, API documentation and reconnection in the browser."""

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import expect

from judge.models import Season
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor
from tests.browser.touring import make_pages
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import close_round, open_round_for
from tests.factories import make_season

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def prepare_round() -> tuple[Season, Node]:
    """Create a season with judged nodes and a round that is ready to be closed."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=2)
    open_round_for(season, nodes[0])
    return season, nodes[0]


async def test_charts_are_drawn(visitor: Visitor) -> None:
    pages = await sync_to_async(make_pages)()
    drawn = ("/leaderboard/", "/rounds/", "/compare/", "/tasks/chain_sum/")
    charted = [path for path in pages if path in drawn]
    for path in [*charted, next(path for path in pages if path.startswith("/nodes/"))]:
        await visitor.open(path)
        await visitor.page.wait_for_selector("#plot[data-drawn] .scatterlayer")
    assert visitor.complaints == []


async def test_api_documentation_works_under_the_security_policy(visitor: Visitor) -> None:
    await visitor.open("/api/docs")
    operation = visitor.page.locator(".operation", has_text="GET /api/v1/leaderboard")
    await operation.locator("summary").first.click()
    await expect(operation.locator("pre").first).to_be_visible()
    assert visitor.complaints == []


async def test_chosen_theme_persists_until_it_is_set_to_system_again(visitor: Visitor) -> None:
    await visitor.open("/")
    root = visitor.page.locator("html")
    switch = visitor.page.locator("[data-theme-switch]")
    await expect(switch).to_have_accessible_name("Theme: system")
    await switch.click()
    await switch.click()
    await visitor.page.reload()
    await expect(root).to_have_attribute("data-theme", "dark")
    await expect(switch).to_have_accessible_name("Theme: dark")
    await switch.click()
    await expect(root).not_to_have_attribute("data-theme", "dark")
    assert visitor.complaints == []


async def test_closed_socket_is_shown_and_resumed_without_missing_updates(visitor: Visitor) -> None:
    _, node = await sync_to_async(prepare_round)()
    await visitor.page.add_init_script(
        "const Real = WebSocket; window.reachable = true;"
        "WebSocket = class extends Real {"
        " constructor(url) { super(window.reachable ? url : url.origin + '/nowhere');"
        " window.cut = this; window.requested = String(url); } };"
    )
    await visitor.open("/leaderboard/")
    score = visitor.page.locator(f"tr[data-node={node.name}] data")
    await expect(score).to_have_attribute("value", "1.0")
    await visitor.page.evaluate("window.reachable = false; window.cut.close()")
    await visitor.page.wait_for_selector("#link.reconnecting")
    assert "showing data from" in await visitor.page.inner_text("#link")

    await sync_to_async(close_round)()
    await visitor.page.evaluate("window.reachable = true")

    await visitor.page.wait_for_selector("#link.live")
    await expect(score).not_to_have_attribute("value", "1.0")
    assert "resume=" in await visitor.page.evaluate("window.requested")
