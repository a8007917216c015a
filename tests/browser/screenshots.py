"""Take screenshots of every page in four variants, for review: `make screenshots`.

Fills its own database with demo data, serves it, and writes `var/screenshots/`. With `--pictures`
it also writes the README's three pictures to docs/images/.
"""

import sys
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

# This import starts Postgres and Valkey and exports their addresses, which Django reads next.
import tests.services  # noqa: F401  # isort: skip

import django
from django.core.management import call_command
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from swarm_web.catalogues import compile_stale
from tests.processes import PROJECT

SHOTS = PROJECT / "var" / "screenshots"
PICTURES = PROJECT / "docs" / "images"
SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1280, "height": 900},
    "phone": {"width": 360, "height": 740},
}
# The pages of the README's pictures, with their variants.
SHOWN = {"home": "light", "leaderboard": "dark", "round": "light"}
PAGES = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "rounds": "/rounds/",
    "compare": "/compare/",
    "lab": "/lab/",
    "rollouts": "/rollouts/",
    "flow": "/rollouts/flow/",
    "tasks": "/tasks/",
    "downloads": "/downloads/",
    "join": "/join/",
    "status": "/status/",
    "api": "/api/docs",
}
# Pages of one object: the page with a link to it, and the selector of the link; there may be none.
OBJECTS = {
    "node": ("/leaderboard/", "tbody .who a"),
    "round": ("/rounds/", "main tr:has(.phase.closed) a"),
    "rollout": ("/rollouts/", "main article a[href^='/rollouts/']"),
    "lab-report": ("/lab/", "#reports tbody a"),
}
# The time until charts are drawn and the socket is connected.
SETTLE_MS = 900


@dataclass(frozen=True)
class Variant:
    """A colour scheme, screen size and language."""

    name: str
    scheme: Literal["light", "dark"] = "light"
    size: str = "wide"
    language: str = "en"

    def open(self, browser: Browser, site: str) -> Page:
        """Return an empty page of a visitor with this variant."""
        context = browser.new_context(color_scheme=self.scheme, viewport=SIZES[self.size])
        context.add_cookies([{"name": "language", "value": self.language, "url": site}])
        return context.new_page()


WAYS = (
    Variant("light"),
    Variant("dark", scheme="dark"),
    Variant("phone", size="phone"),
    Variant("persian", language="fa"),
)


def find_objects(page: Page, site: str) -> dict[str, str]:
    """Return the addresses of one object of each kind, if there are any."""
    found = {}
    for name, (path, link) in OBJECTS.items():
        page.goto(site + path)
        if page.locator(link).count():
            found[name] = page.locator(link).first.get_attribute("href") or path
    return found


def shoot(browser: Browser, site: str, *, pictures: bool) -> None:
    """Write each page in each variant; the README's pages also cropped to a screen."""
    pages = PAGES | find_objects(browser.new_page(), site)
    for way in WAYS:
        page = way.open(browser, site)
        for name, path in pages.items():
            page.goto(site + path)
            page.wait_for_timeout(SETTLE_MS)
            page.screenshot(path=SHOTS / f"{name}-{way.name}.png", full_page=True)
            if pictures and SHOWN.get(name) == way.name:
                image = Image.open(BytesIO(page.screenshot()))
                image.save(PICTURES / f"{name}.webp", quality=82, method=6)
        sys.stdout.write(f"{way.name}: {len(pages)} pages\n")


def main(*, pictures: bool) -> None:
    """Fill the database, serve it and take the screenshots."""
    django.setup()
    # These modules read Django's settings.
    from tests.browser.conftest import FLAGS, find_browser
    from tests.web import serving

    compile_stale()
    SHOTS.mkdir(parents=True, exist_ok=True)
    call_command("migrate", verbosity=0)
    call_command("seed_demo_data", size="small")
    with serving() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        shoot(browser, site, pictures=pictures)
        browser.close()
    sys.stdout.write(f"Look at them in {SHOTS}\n")


if __name__ == "__main__":
    main(pictures="--pictures" in sys.argv)
