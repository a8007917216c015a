"""A server process on the test database, and Chromium."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright
from pytest_django import DjangoDbBlocker

from tests.dashboard.lab_reports import publish_sharing
from tests.web import serving

# The first installed one is used, because playwright's own would be a download. Debian's headless
# shell takes half of Chromium's processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Root cannot use Chromium's sandbox, and a browser under test needs no background requests.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser() -> str:
    """Return the path of the browser for the tests."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(
            f"none of {', '.join(BROWSERS)} is installed: install one, or run -m 'not browser'"
        )
    return found


@dataclass
class Visitor:
    """A page, the site's address, and the errors and warnings of the browser."""

    page: Page
    site: str
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Record console errors and warnings, including violations of the security policy."""

        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.complaints.append(message.text)

        self.page.on("console", note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def open(self, path: str) -> None:
        """Open a page of the site and wait until its socket is live."""
        await self.page.goto(self.site + path)
        await self.page.wait_for_selector("#link.live")


@pytest.fixture(scope="session")
def site(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Run uvicorn on the test database for all tests; yield the site's address."""
    lab = tmp_path_factory.mktemp("lab")
    publish_sharing(lab)
    with django_db_blocker.unblock(), serving(LAB_REPORTS=str(lab)) as address:
        yield address


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Run one Chromium for all tests; each test opens its own isolated context."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        yield browser
        await browser.close()


@asynccontextmanager
async def visiting(browser: Browser, site: str, *, scripts: bool = True) -> AsyncIterator[Visitor]:
    """Open a page in a new context, with its own cookies and storage, until the block ends."""
    async with await browser.new_context(
        viewport={"width": 1280, "height": 740}, java_script_enabled=scripts
    ) as context:
        visitor = Visitor(await context.new_page(), site)
        visitor.listen()
        yield visitor
    await sync_to_async(connections.close_all)()


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(transactional_db: None, site: str, browser: Browser) -> AsyncIterator[Visitor]:
    """A visitor with a wide screen."""
    async with visiting(browser, site) as visitor:
        yield visitor
