"""Test that open pages follow changes of the swarm without disturbing their visitor."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import Browser, Route, WebSocketRoute, expect
from pytest_django import DjangoDbBlocker

from judge.models import Round, Ruling, Season
from judge.services.oversight import quarantine_node
from judge.services.seasons import end_season
from swarm_web.core import bus
from swarm_web.dashboard.models import Announcement
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor, visiting
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.live.listening import close_round, open_round_for
from tests.factories import make_node, make_season
from tests.web import serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
# The close code after which a page polls immediately.
TOO_MANY_VIEWS = 4429


def prepare() -> tuple[list[Node], Round]:
    """Create a season with two judged nodes and a round that is ready to be closed."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=2, rounds=2)
    open_round_for(season, nodes[0])
    return nodes, season.rounds.latest("number")


def start_another_season() -> None:
    """End the running season, and start another one."""
    end_season(Season.objects.get(name="Autumn"), now=timezone.now())
    make_season("Winter")


def announce(text: str) -> None:
    """Create an announcement for an hour, and ring for viewers."""
    now = timezone.now()
    Announcement.objects.create(text=text, starts_at=now, ends_at=now + timedelta(hours=1))
    bus.ring(bus.VIEWERS)


def end_announcements() -> None:
    Announcement.objects.update(ends_at=timezone.now())
    bus.ring(bus.VIEWERS)


def rule(judge_round: Round) -> None:
    """Create a ruling that is shown above the round's sheet."""
    Ruling.objects.create(
        action=Ruling.Action.RECOMPUTE,
        reason="looks odd",
        made_at=timezone.now(),
        round=judge_round,
    )
    bus.ring(bus.VIEWERS)


@pytest.fixture(scope="module")
def cached_port(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Run a site that caches pages for a minute; yield its port."""
    with (
        django_db_blocker.unblock(),
        serving(PAGE_CACHE_SECONDS="60", ALLOWED_HOSTS=".localhost") as address,
    ):
        yield address.rpartition(":")[2]


@pytest_asyncio.fixture(loop_scope="session")
async def cached_visitor(
    transactional_db: None, browser: Browser, cached_port: str
) -> AsyncIterator[Visitor]:
    """A visitor of a site with a page cache, under a host name without cached pages."""
    async with visiting(browser, f"http://{uuid4()}.localhost:{cached_port}") as visitor:
        yield visitor


async def test_open_page_shows_a_change_despite_the_page_cache(cached_visitor: Visitor) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await cached_visitor.open(judge_round.get_absolute_url())
    heading = cached_visitor.page.locator("#round h1")
    await expect(heading).to_contain_text("is open")

    await sync_to_async(close_round)()

    await expect(heading).to_contain_text("closed with")
    assert cached_visitor.complaints == []


async def test_new_visit_shows_a_change_despite_the_page_cache(cached_visitor: Visitor) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await cached_visitor.open(judge_round.get_absolute_url())
    await cached_visitor.page.goto("about:blank")
    await sync_to_async(close_round)()

    await cached_visitor.open(judge_round.get_absolute_url())

    await expect(cached_visitor.page.locator("#round h1")).to_contain_text("closed with")
    assert cached_visitor.complaints == []


async def open_with_manual_clock(visitor: Visitor, path: str) -> None:
    """Open a page whose clock the test controls."""
    await visitor.page.clock.install()
    await visitor.open(path)


@pytest.mark.parametrize("path", ["/compare/", "/nodes/{}/"])
async def test_content_without_live_messages_is_refreshed_periodically(
    path: str, visitor: Visitor
) -> None:
    nodes, _ = await sync_to_async(prepare)()
    await open_with_manual_clock(visitor, path.format(nodes[0].name))
    async with visitor.page.expect_request(visitor.page.url):
        await visitor.page.clock.fast_forward(20_000)


async def test_status_page_is_refreshed_without_reload(visitor: Visitor) -> None:
    await open_with_manual_clock(visitor, "/status/")
    known = visitor.page.locator("tr", has_text="Registered nodes").locator("td")
    await expect(known).to_have_text("0")
    await sync_to_async(make_node)("amber")
    await visitor.page.clock.fast_forward(20_000)
    await expect(known).to_have_text("1")


async def test_focus_remains_on_the_link_of_a_moved_row(visitor: Visitor) -> None:
    nodes, _ = await sync_to_async(prepare)()
    await visitor.open("/leaderboard/")
    row = visitor.page.locator(f"tr[data-node={nodes[0].name}]")
    link = row.get_by_role("link").first
    await link.focus()

    await sync_to_async(close_round)()

    await expect(row.locator("data")).not_to_have_attribute("value", "1.0")
    await expect(link).to_be_focused()


async def test_selected_text_is_updated_after_the_selection_is_removed(visitor: Visitor) -> None:
    nodes, _ = await sync_to_async(prepare)()
    await visitor.open("/leaderboard/")
    page = visitor.page
    lead = page.locator("#lead")
    await expect(lead).to_contain_text("share first place")
    await lead.select_text()

    await sync_to_async(quarantine_node)(nodes[1], reason="copies", actor=None, now=timezone.now())

    await expect(page.locator("tbody[data-rows] tr")).to_have_count(1)
    assert "share first place" in await page.evaluate("String(getSelection())")
    await page.evaluate("getSelection().removeAllRanges()")
    await expect(lead).to_contain_text("is the only ranked node")


async def test_unchanged_sheet_of_a_closed_round_is_not_replaced(visitor: Visitor) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await sync_to_async(close_round)()
    await visitor.open(judge_round.get_absolute_url())
    page = visitor.page
    await expect(page.locator("#sheet .copy").first).to_be_visible()
    await page.evaluate("document.getElementById('sheet').kept = true")

    await sync_to_async(rule)(judge_round)

    await expect(page.locator("#round")).to_contain_text("looks odd")
    assert await page.evaluate("document.getElementById('sheet').kept")
    await expect(page.locator("#sheet .copy").first).to_be_visible()
    assert visitor.complaints == []


async def open_sheet_and_change_it(visitor: Visitor, *, script: str) -> None:
    """Open a closed round, change the page's state with a script, then change its sheet."""
    nodes, judge_round = await sync_to_async(prepare)()
    await sync_to_async(close_round)()
    await visitor.page.set_viewport_size({"width": 360, "height": 800})
    await visitor.open(judge_round.get_absolute_url())
    await visitor.page.evaluate(script)

    await sync_to_async(quarantine_node)(nodes[0], reason="copies", actor=None, now=timezone.now())

    await expect(visitor.page.locator("#sheet")).to_contain_text("Quarantined: not ranked.")


async def test_opened_question_stays_open(visitor: Visitor) -> None:
    await open_sheet_and_change_it(
        visitor, script="document.getElementById('question-1').open = true"
    )
    opened = await visitor.page.evaluate(
        "[...document.querySelectorAll('details.question[open]')].map(({ id }) => id)"
    )
    assert opened == ["question-1"]


async def test_scroll_position_of_a_table_is_preserved(visitor: Visitor) -> None:
    await open_sheet_and_change_it(
        visitor, script="document.querySelector('#sheet .scroll').scrollLeft = 40"
    )
    assert await visitor.page.evaluate("document.querySelector('#sheet .scroll').scrollLeft") == 40


@pytest.mark.parametrize(
    ("path", "part"), [("/", "#ahead"), ("/leaderboard/", "#meaning"), ("/rounds/", "#seasons")]
)
async def test_pages_show_the_name_of_a_new_season(path: str, part: str, visitor: Visitor) -> None:
    await sync_to_async(prepare)()
    await visitor.open(path)
    await expect(visitor.page.locator(part)).to_contain_text("Autumn")

    await sync_to_async(start_another_season)()

    await expect(visitor.page.locator(part)).to_contain_text("Winter")
    assert visitor.complaints == []


async def test_announcement_appears_and_disappears_without_reload(cached_visitor: Visitor) -> None:
    await cached_visitor.open("/")
    banner = cached_visitor.page.locator("#announcement")

    await sync_to_async(announce)("Maintenance at noon")
    await expect(banner).to_contain_text("Maintenance at noon")

    await sync_to_async(end_announcements)()
    await expect(banner).to_be_empty()
    assert cached_visitor.complaints == []


async def test_next_announcement_is_shown_after_dismissing_one(cached_visitor: Visitor) -> None:
    page = cached_visitor.page
    await sync_to_async(announce)("Maintenance at noon")
    await cached_visitor.open("/")
    banner = page.get_by_label("Announcement")
    await page.get_by_role("button", name="Dismiss").click()
    await expect(banner).to_be_hidden()
    await page.reload()
    await page.wait_for_selector("#link.live")
    await expect(banner).to_be_hidden()

    await sync_to_async(announce)("Back at one")

    await expect(banner).to_contain_text("Back at one")
    assert cached_visitor.complaints == []


async def test_visitor_who_dismissed_an_announcement_receives_cached_pages(
    cached_visitor: Visitor,
) -> None:
    await sync_to_async(announce)("Maintenance at noon")
    await cached_visitor.open("/")
    await cached_visitor.page.get_by_role("button", name="Dismiss").click()
    await expect(cached_visitor.page.get_by_label("Announcement")).to_be_hidden()
    answer = await cached_visitor.page.goto(f"{cached_visitor.site}/")
    assert answer is not None
    assert "etag" in answer.headers


async def test_round_is_a_link_and_its_phase_is_announced_once_to_screen_readers(
    visitor: Visitor,
) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await visitor.open("/join/")
    page, said = visitor.page, visitor.page.locator("#said")
    await expect(said).to_have_role("status")
    await expect(said).to_be_empty()
    await expect(
        page.get_by_role("link", name=f"Round {judge_round.number} is open")
    ).to_be_visible()
    await page.evaluate("document.getElementById('said').kept = true")

    await sync_to_async(close_round)()

    await expect(said).not_to_be_empty()
    assert await said.inner_text() == await page.locator("[data-happening]").inner_text()
    assert await page.evaluate("document.getElementById('said').kept")


async def open_with_socket_route(visitor: Visitor, path: str) -> WebSocketRoute:
    """Open a page with a manual clock, and return its socket, which the test can close."""
    sockets: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    await visitor.page.clock.install()
    await visitor.page.route_web_socket("**/ws/live/**", pass_on)
    await visitor.open(path)
    return sockets[-1]


async def test_lost_and_restored_connection_are_announced_to_screen_readers(
    visitor: Visitor,
) -> None:
    socket = await open_with_socket_route(visitor, "/join/")
    said = visitor.page.locator("#said")
    await socket.close(code=TOO_MANY_VIEWS)
    await expect(said).to_contain_text("no live updates")
    await visitor.page.clock.fast_forward(15_000)
    await expect(said).to_have_text("live")


async def test_page_without_a_pill_is_polled(visitor: Visitor) -> None:
    """While the database is unavailable, pages have neither a pill nor the server's time."""

    async def respond_without_pill(route: Route) -> None:
        down = '<div id="status" data-region>Some systems are down</div>'
        await route.fulfill(content_type="text/html", body=f"<body>{down}</body>")

    page = visitor.page
    socket = await open_with_socket_route(visitor, "/status/")
    await page.route("**/status/", respond_without_pill)
    await socket.close(code=TOO_MANY_VIEWS)

    await expect(page.locator("#status")).to_have_text("Some systems are down")
    await expect(page.locator("#pill")).to_be_hidden()
    await expect(page.locator("#link")).to_contain_text("refreshed at")
    await page.clock.fast_forward(15_000)
    await expect(page.locator("#pill")).to_be_visible()
    assert visitor.complaints == []


async def test_hidden_tab_closes_its_socket_until_it_is_shown(visitor: Visitor) -> None:
    await sync_to_async(prepare)()
    await visitor.page.add_init_script(
        "window.hide = (hidden) => {"
        "  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        "  document.dispatchEvent(new Event('visibilitychange'));"
        "}"
    )
    async with visitor.page.expect_websocket() as opened:
        await visitor.open("/leaderboard/")
    socket = await opened.value
    async with socket.expect_event("close"):
        await visitor.page.evaluate("hide(true)")
    async with visitor.page.expect_websocket():
        await visitor.page.evaluate("hide(false)")
