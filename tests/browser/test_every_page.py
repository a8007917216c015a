"""What holds for every page, in a language of each direction of writing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from playwright.async_api import Browser

from tests.browser.conftest import visiting
from tests.browser.touring import Tour, make_pages, tour

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db,
    pytest.mark.asyncio(loop_scope="session"),
]
REFUSED = "/leaderboard/?window=year"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(committed_rows: None) -> list[str]:
    """Return the addresses of all pages, on a site where each has something to show."""
    return await sync_to_async(make_pages)()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["en", "fa"])
async def toured(
    request: pytest.FixtureRequest, pages: list[str], site: str, browser: Browser
) -> AsyncIterator[Tour]:
    """Visit every page once in a language; opening a page takes most of the time."""
    async with visiting(browser, site) as visitor:
        yield await tour(visitor, pages, request.param)


async def test_no_page_has_a_grave_fault(toured: Tour) -> None:
    assert "\n".join(toured.faults) == ""


async def test_no_page_scrolls_sideways_on_a_phone(toured: Tour) -> None:
    assert toured.too_wide == []


async def test_no_page_asks_anybody_else_for_anything(toured: Tour) -> None:
    assert toured.asked_elsewhere == []


async def test_the_browser_complains_of_no_page(toured: Tour) -> None:
    assert toured.complaints == []


async def test_the_page_that_refuses_has_no_grave_fault(
    pages: list[str], site: str, browser: Browser
) -> None:
    async with visiting(browser, site) as visitor:
        seen = await tour(visitor, [REFUSED], "en")
    assert "\n".join(seen.faults) == ""
    assert all("Failed to load resource" in complaint for complaint in seen.complaints)
