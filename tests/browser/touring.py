"""Visit all pages once and record the faults."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from django.utils import timezone
from playwright.async_api import Page, Request

from judge.services.comparing import compare_season
from tests.browser.conftest import Visitor
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_archived_rollout, make_exchange, make_season

# axe-core 4.14.1 by Deque Systems, MPL 2.0, from npm; its licence is in the same directory.
AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
# Faults that block assistive technology, by WCAG 2.2 AA and axe's best practices.
SERIOUS = ("serious", "critical")
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
ALL_RULES: dict[str, Any] = {}
COLOURS = {"runOnly": {"type": "rule", "values": COLOUR_RULES}}
NO_COLOURS = {"rules": {rule: {"enabled": False} for rule in COLOUR_RULES}}
Check = tuple[Literal["light", "dark"], dict[str, Any]]
# Schemes differ only in colours, and languages in everything but colours.
CHECKS: dict[str, Sequence[Check]] = {
    "en": [("light", ALL_RULES), ("dark", COLOURS)],
    "fa": [("light", NO_COLOURS)],
}
FIND_FAULTS = """async ([grave, options]) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.filter((fault) => grave.includes(fault.impact))
    .map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
}"""


def make_pages() -> list[str]:
    """Judge some nodes and return the addresses of all pages."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=3)
    compare_season(season, now=timezone.now())
    rollout = make_archived_rollout(season, nodes[0], learners=nodes[1:], question="long " * 300)
    make_exchange(season, nodes[0], nodes[1], used=5)
    return [
        "/",
        "/leaderboard/",
        f"/nodes/{nodes[0].name}/",
        "/rounds/",
        f"/rounds/{season.rounds.latest('number').number}/",
        f"/rounds/{season.rounds.latest('number').number}/questions/1/",
        "/downloads/",
        "/join/",
        "/status/",
        "/compare/",
        "/lab/",
        "/lab/sharing/",
        "/rollouts/",
        f"/rollouts/{rollout.pk}/",
        "/rollouts/flow/",
        "/tasks/",
        "/tasks/chain_sum/",
        "/api/docs",
    ]


async def find_faults(page: Page, language: str) -> list[str]:
    """Return axe-core's serious and critical findings, each with the elements concerned.

    The page needs axe-core as an init script, to which the page's security policy does not apply.
    """
    found: list[str] = []
    for scheme, options in CHECKS[language]:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        faults = await page.evaluate(FIND_FAULTS, [SERIOUS, options])
        found += [f"{scheme}: {fault}" for fault in faults]
    return found


@dataclass
class Tour:
    """The pages with faults, by kind of fault."""

    too_wide: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    asked_elsewhere: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


async def tour(visitor: Visitor, paths: Sequence[str], language: str) -> Tour:
    """Open each page 360 pixels wide, then check it on a wide screen with axe-core."""
    page, seen = visitor.page, Tour(complaints=visitor.complaints)

    def note(request: Request) -> None:
        if urlsplit(request.url).netloc not in (urlsplit(visitor.site).netloc, ""):
            seen.asked_elsewhere.append(request.url)

    page.on("request", note)
    await page.add_init_script(path=AXE)
    await page.context.add_cookies([{"name": "language", "value": language, "url": visitor.site}])
    for path in paths:
        await page.set_viewport_size({"width": 360, "height": 740})
        await visitor.open(path)
        if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            seen.too_wide.append(path)
        await page.set_viewport_size({"width": 1280, "height": 740})
        seen.faults += [f"{path} {fault}" for fault in await find_faults(page, language)]
    return seen
