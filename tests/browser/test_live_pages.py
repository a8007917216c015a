"""What a page shows keeps up with the swarm, and leaves alone what the visitor has in hand."""

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
# Closed with this, a page polls at once.
TOO_MANY_VIEWS = 4429


def prepare() -> tuple[list[Node], Round]:
    """Make a season with two judged nodes and a round that only waits to be closed."""
    season = make_season("Autumn")
    nodes = judge_nodes(season, count=2, rounds=2)
    open_round_for(season, nodes[0])
    return nodes, season.rounds.latest("number")


def begin_another_season() -> None:
    """End the season that runs, and start another one."""
    end_season(Season.objects.get(name="Autumn"), now=timezone.now())
    make_season("Winter")


def announce(text: str) -> None:
    """Announce something for an hour, as pages see it at their next reading."""
    now = timezone.now()
    Announcement.objects.create(text=text, starts_at=now, ends_at=now + timedelta(hours=1))
    bus.ring(bus.VIEWERS)


def end_announcements() -> None:
    Announcement.objects.update(ends_at=timezone.now())
    bus.ring(bus.VIEWERS)


def rule(judge_round: Round) -> None:
    """Put a ruling on record that is shown above the round's sheet."""
    Ruling.objects.create(
        action=Ruling.Action.RECOMPUTE,
        reason="looks odd",
        made_at=timezone.now(),
        round=judge_round,
    )
    bus.ring(bus.VIEWERS)


@pytest.fixture(scope="module")
def keeping_port(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Run a site that keeps pages for a minute, and return its port."""
    with (
        django_db_blocker.unblock(),
        serving(PAGE_CACHE_SECONDS="60", ALLOWED_HOSTS=".localhost") as address,
    ):
        yield address.rpartition(":")[2]


@pytest_asyncio.fixture(loop_scope="session")
async def late_visitor(
    transactional_db: None, browser: Browser, keeping_port: str
) -> AsyncIterator[Visitor]:
    """Return a visitor of a site that keeps pages, under a host name that nobody has used."""
    async with visiting(browser, f"http://{uuid4()}.localhost:{keeping_port}") as visitor:
        yield visitor


async def test_a_change_is_shown_though_the_page_is_kept(late_visitor: Visitor) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await late_visitor.open(judge_round.get_absolute_url())
    heading = late_visitor.page.locator("#round h1")
    await expect(heading).to_contain_text("is open")

    await sync_to_async(close_round)()

    await expect(heading).to_contain_text("closed with")
    assert late_visitor.complaints == []


async def test_who_comes_between_gets_past_a_kept_page(late_visitor: Visitor) -> None:
    _, judge_round = await sync_to_async(prepare)()
    await late_visitor.open(judge_round.get_absolute_url())
    await late_visitor.page.goto("about:blank")
    await sync_to_async(close_round)()

    await late_visitor.open(judge_round.get_absolute_url())

    await expect(late_visitor.page.locator("#round h1")).to_contain_text("closed with")
    assert late_visitor.complaints == []


async def open_quietly(visitor: Visitor, path: str) -> None:
    """Open a page whose clock the test controls."""
    await visitor.page.clock.install()
    await visitor.open(path)


@pytest.mark.parametrize("path", ["/compare/", "/nodes/{}/"])
async def test_what_no_message_tells_of_is_asked_for(path: str, visitor: Visitor) -> None:
    nodes, _ = await sync_to_async(prepare)()
    await open_quietly(visitor, path.format(nodes[0].name))
    async with visitor.page.expect_request(visitor.page.url):
        await visitor.page.clock.fast_forward(20_000)


async def test_a_part_that_works_no_more_is_told_without_reload(visitor: Visitor) -> None:
    await open_quietly(visitor, "/status/")
    known = visitor.page.locator("tr", has_text="Registered nodes").locator("td")
    await expect(known).to_have_text("0")
    await sync_to_async(make_node)("amber")
    await visitor.page.clock.fast_forward(20_000)
    await expect(known).to_have_text("1")


async def test_the_focus_stays_on_the_link_of_a_row_that_moves(visitor: Visitor) -> None:
    nodes, _ = await sync_to_async(prepare)()
    await visitor.open("/leaderboard/")
    row = visitor.page.locator(f"tr[data-node={nodes[0].name}]")
    link = row.get_by_role("link").first
    await link.focus()

    await sync_to_async(close_round)()

    await expect(row.locator("data")).not_to_have_attribute("value", "1.0")
    await expect(link).to_be_focused()


async def test_what_is_selected_waits_until_it_is_let_go(visitor: Visitor) -> None:
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


async def test_a_closed_round_stays_as_it_is_at_the_next_turn(visitor: Visitor) -> None:
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


async def open_a_sheet_and_change_it(visitor: Visitor, *, hold: str) -> None:
    """Open a closed round, have a script take something in hand, then exchange its sheet."""
    nodes, judge_round = await sync_to_async(prepare)()
    await sync_to_async(close_round)()
    await visitor.page.set_viewport_size({"width": 360, "height": 800})
    await visitor.open(judge_round.get_absolute_url())
    await visitor.page.evaluate(hold)

    await sync_to_async(quarantine_node)(nodes[0], reason="copies", actor=None, now=timezone.now())

    await expect(visitor.page.locator("#sheet")).to_contain_text("Quarantined: not ranked.")


async def test_an_opened_question_stays_open(visitor: Visitor) -> None:
    await open_a_sheet_and_change_it(
        visitor, hold="document.getElementById('question-1').open = true"
    )
    opened = await visitor.page.evaluate(
        "[...document.querySelectorAll('details.question[open]')].map(({ id }) => id)"
    )
    assert opened == ["question-1"]


async def test_a_scrolled_table_stays_where_it_is(visitor: Visitor) -> None:
    await open_a_sheet_and_change_it(
        visitor, hold="document.querySelector('#sheet .scroll').scrollLeft = 40"
    )
    assert await visitor.page.evaluate("document.querySelector('#sheet .scroll').scrollLeft") == 40


@pytest.mark.parametrize(
    ("path", "part"), [("/", "#ahead"), ("/leaderboard/", "#meaning"), ("/rounds/", "#seasons")]
)
async def test_a_new_season_is_named_where_its_rows_stand(
    path: str, part: str, visitor: Visitor
) -> None:
    await sync_to_async(prepare)()
    await visitor.open(path)
    await expect(visitor.page.locator(part)).to_contain_text("Autumn")

    await sync_to_async(begin_another_season)()

    await expect(visitor.page.locator(part)).to_contain_text("Winter")
    assert visitor.complaints == []


async def test_an_announcement_comes_and_goes_by_itself(late_visitor: Visitor) -> None:
    await late_visitor.open("/")
    banner = late_visitor.page.locator("#announcement")

    await sync_to_async(announce)("Maintenance at noon")
    await expect(banner).to_contain_text("Maintenance at noon")

    await sync_to_async(end_announcements)()
    await expect(banner).to_be_empty()
    assert late_visitor.complaints == []


async def test_who_hid_an_announcement_hears_of_the_next_one(late_visitor: Visitor) -> None:
    page = late_visitor.page
    await sync_to_async(announce)("Maintenance at noon")
    await late_visitor.open("/")
    banner = page.get_by_label("Announcement")
    await page.get_by_role("button", name="Dismiss").click()
    await expect(banner).to_be_hidden()
    await page.reload()
    await page.wait_for_selector("#link.live")
    await expect(banner).to_be_hidden()

    await sync_to_async(announce)("Back at one")

    await expect(banner).to_contain_text("Back at one")
    assert late_visitor.complaints == []


async def test_who_hid_an_announcement_gets_the_pages_that_are_kept_for_all(
    late_visitor: Visitor,
) -> None:
    await sync_to_async(announce)("Maintenance at noon")
    await late_visitor.open("/")
    await late_visitor.page.get_by_role("button", name="Dismiss").click()
    await expect(late_visitor.page.get_by_label("Announcement")).to_be_hidden()
    answer = await late_visitor.page.goto(f"{late_visitor.site}/")
    assert answer is not None
    assert "etag" in answer.headers


async def test_the_round_is_a_link_and_its_phase_is_said_once(visitor: Visitor) -> None:
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


async def open_between(visitor: Visitor, path: str) -> WebSocketRoute:
    """Open a page with its clock in our hands, and return its socket to be cut."""
    sockets: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    await visitor.page.clock.install()
    await visitor.page.route_web_socket("**/ws/live/**", pass_on)
    await visitor.open(path)
    return sockets[-1]


async def test_a_lost_link_is_said_and_its_return_too(visitor: Visitor) -> None:
    socket = await open_between(visitor, "/join/")
    said = visitor.page.locator("#said")
    await socket.close(code=TOO_MANY_VIEWS)
    await expect(said).to_contain_text("no live updates")
    await visitor.page.clock.fast_forward(15_000)
    await expect(said).to_have_text("live")


async def test_a_page_without_a_pill_is_polled_all_the_same(visitor: Visitor) -> None:
    """While the database is down, pages have neither a pill nor the server's time."""

    async def tell_without_pill(route: Route) -> None:
        down = '<div id="status" data-region>Some systems are down</div>'
        await route.fulfill(content_type="text/html", body=f"<body>{down}</body>")

    page = visitor.page
    socket = await open_between(visitor, "/status/")
    await page.route("**/status/", tell_without_pill)
    await socket.close(code=TOO_MANY_VIEWS)

    await expect(page.locator("#status")).to_have_text("Some systems are down")
    await expect(page.locator("#pill")).to_be_hidden()
    await expect(page.locator("#link")).to_contain_text("refreshed at")
    await page.clock.fast_forward(15_000)
    await expect(page.locator("#pill")).to_be_visible()
    assert visitor.complaints == []


async def test_a_hidden_tab_is_silent_until_it_is_shown(visitor: Visitor) -> None:
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
