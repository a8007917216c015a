"""No page has a serious fault that axe-core finds, in light and dark, in both directions."""

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, Page, Request, expect

from tests.browser.conftest import Visitor
from tests.browser.test_pages import make_pages

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# axe-core 4.14.1 by Deque Systems, MPL 2.0, from npm; the licence lies beside it.
AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
# What assistive technology cannot get past; WCAG 2.2 AA and axe's own good practice.
GRAVE = ("serious", "critical")
# The schemes differ in colours alone, so the second one needs the rules about colours only.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
SCHEMES: dict[Literal["light", "dark"], dict[str, Any]] = {"light": {}, "dark": COLOURS}
FIND_FAULTS = """async ([grave, options]) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.filter((fault) => grave.includes(fault.impact))
    .map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
}"""


async def find_faults(page: Page) -> list[str]:
    """Return axe-core's grave findings in light and dark, each with the elements concerned."""
    # By the debugger, which the page's security policy does not bind.
    await page.evaluate(AXE.read_text())
    found: list[str] = []
    for scheme, options in SCHEMES.items():
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        faults = await page.evaluate(FIND_FAULTS, [GRAVE, options])
        found += [f"{scheme}: {fault}" for fault in faults]
    return found


@pytest.mark.parametrize("language", ["en", "fa"])
async def test_no_page_has_a_grave_fault(visitor: Visitor, language: str) -> None:
    page = visitor.page
    await page.context.add_cookies([{"name": "language", "value": language, "url": visitor.site}])
    faults: list[str] = []
    for path in await sync_to_async(make_pages)():
        await visitor.open(path)
        faults += [f"{path} {fault}" for fault in await find_faults(page)]
    assert "\n".join(faults) == ""
    assert visitor.complaints == []


async def test_the_page_that_refuses_has_no_grave_fault(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/?window=year")
    assert "\n".join(await find_faults(visitor.page)) == ""
    assert all("Failed to load resource" in complaint for complaint in visitor.complaints)


async def test_no_page_asks_anybody_else_for_anything(visitor: Visitor) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    visitor.page.on("request", note)
    for path in await sync_to_async(make_pages)():
        await visitor.open(path)
    here = urlsplit(visitor.site).netloc
    assert [url for url in asked if urlsplit(url).netloc not in (here, "")] == []
    assert visitor.complaints == []


async def test_the_keyboard_goes_through_the_header_in_order(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/")
    page = visitor.page
    reached = []
    for _ in range(9):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.textContent.trim()"))
    assert reached[:3] == ["Skip to the content", "Murmuration", "Leaderboard"]
    assert reached.index("Join") < reached.index("English")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert await page.evaluate(outline) == "solid"


async def test_the_skip_link_leads_past_the_header(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/")
    await visitor.page.keyboard.press("Tab")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.locator("main")).to_be_focused()


async def test_the_language_menu_opens_and_closes_by_keyboard(visitor: Visitor) -> None:
    await visitor.open("/leaderboard/?window=7d")
    summary = visitor.page.locator("details.menu summary")
    await summary.focus()
    await visitor.page.keyboard.press("Enter")
    persian = visitor.page.get_by_role("link", name="فارسی")
    await expect(persian).to_be_visible()
    await visitor.page.keyboard.press("Escape")
    await expect(persian).to_be_hidden()
    await expect(summary).to_be_focused()


async def test_choosing_persian_turns_the_page_and_keeps_its_query(visitor: Visitor) -> None:
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


async def test_the_language_can_be_chosen_without_scripts(
    visitor: Visitor, browser: Browser
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{visitor.site}/join/")
    await page.locator("details.menu summary").click()
    await page.get_by_role("link", name="繁體中文").click()
    await expect(page.locator("html")).to_have_attribute("lang", "zh-hant")
    await context.close()
