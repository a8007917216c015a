"""Test requirements on every page, in a left-to-right and a right-to-left language."""

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
    """The addresses of all pages, on a site where each has content."""
    return await sync_to_async(make_pages)()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["en", "fa"])
async def toured(
    request: pytest.FixtureRequest, pages: list[str], site: str, browser: Browser
) -> AsyncIterator[Tour]:
    """The records of one visit to every page in a language, because opening a page is slow."""
    async with visiting(browser, site) as visitor:
        yield await tour(visitor, pages, request.param)


async def test_no_page_has_serious_accessibility_faults(toured: Tour) -> None:
    assert "\n".join(toured.faults) == ""


async def test_no_page_scrolls_sideways_on_a_phone(toured: Tour) -> None:
    assert toured.too_wide == []


async def test_no_page_sends_requests_to_other_hosts(toured: Tour) -> None:
    assert toured.asked_elsewhere == []


async def test_no_page_causes_console_errors_or_warnings(toured: Tour) -> None:
    assert toured.complaints == []


async def test_error_page_has_no_serious_accessibility_faults(
    pages: list[str], site: str, browser: Browser
) -> None:
    async with visiting(browser, site) as visitor:
        seen = await tour(visitor, [REFUSED], "en")
    assert "\n".join(seen.faults) == ""
    assert all("Failed to load resource" in complaint for complaint in seen.complaints)
