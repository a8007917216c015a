"""Test that pages can be used by keyboard, in other languages, and without scripts."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_tab_key_visits_the_header_in_order(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/")
    page = visitor.page
    reached = []
    for _ in range(9):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.textContent.trim()"))
    assert reached[:3] == ["Skip to content", "Murmuration", "Leaderboard"]
    assert reached.index("Join") < reached.index("English")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert await page.evaluate(outline) == "solid"


async def test_skip_link_moves_the_focus_to_the_main_content(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/")
    await visitor.page.keyboard.press("Tab")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.locator("main")).to_be_focused()


async def test_language_menu_opens_and_closes_by_keyboard(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/?window=7d")
    summary = visitor.page.locator("details.menu summary")
    await summary.focus()
    await visitor.page.keyboard.press("Enter")
    persian = visitor.page.get_by_role("link", name="فارسی")
    await expect(persian).to_be_visible()
    await visitor.page.keyboard.press("Escape")
    await expect(persian).to_be_hidden()
    await expect(summary).to_be_focused()


async def test_choosing_persian_sets_rtl_and_preserves_the_query(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/?window=7d")
    page = visitor.page
    await page.locator("details.menu summary").click()
    await page.get_by_role("link", name="فارسی").click()
    await expect(page.locator("html")).to_have_attribute("dir", "rtl")
    assert page.url == f"{visitor.site}/leaderboard/?window=7d"
    family = await page.locator("body").evaluate("body => getComputedStyle(body).fontFamily")
    assert family.startswith("Vazirmatn")
    logo = await page.locator(".brand").bounding_box()
    switches = await page.locator(".switches").bounding_box()
    assert logo is not None
    assert switches is not None
    assert logo["x"] > switches["x"]
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("lang", "fa")


async def test_language_can_be_chosen_without_scripts(visitor: Visitor, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{visitor.site}/join/")
    await page.locator("details.menu summary").click()
    await page.get_by_role("link", name="繁體中文").click()
    await expect(page.locator("html")).to_have_attribute("lang", "zh-hant")
    await context.close()
