"""Test an account in the browser, from sign-up to revoked tokens and passkeys."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from playwright.async_api import Browser, Page, expect

from swarm_web.accounts.services import show_profile
from swarm_web.core import bus
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor, visiting
from tests.browser.touring import tour
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_season
from tests.sockets import NodeSocket, node_socket

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PASSWORD = "seven wise herons"
ENDS_WITHIN_S = 2
# The pages for anonymous users, and the pages of one's own account.
ENTRANCE = ["login/", "signup/", "password/reset/"]
OWN = [
    *("", "nodes/heron/", "data/", "delete/", "email/", "password/change/", "logout/"),
    *("2fa/", "2fa/totp/activate/", "2fa/webauthn/add/"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def person(visitor: Visitor) -> AsyncIterator[Visitor]:
    """A visitor on localhost, because passkeys need a host name instead of an IP address."""
    await sync_to_async(sync_redis().flushdb)()
    visitor.site = visitor.site.replace("127.0.0.1", "localhost")
    yield visitor


async def sign_up(person: Visitor) -> None:
    """Create the account `heron`, starting at the header's link."""
    page = person.page
    await person.open("/")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_role("link", name="sign up").click()
    await page.locator("[name=username]").fill("heron")
    await page.locator("[name=password1]").fill(PASSWORD)
    await page.locator("[name=password2]").fill(PASSWORD)
    await page.locator("main form button[type=submit]").click()
    await expect(page).to_have_url(f"{person.site}/account/")


async def confirm_password(page: Page) -> None:
    """Enter the password again on a page that requires it."""
    await page.locator("[name=password]").fill(PASSWORD)
    await page.get_by_role("button", name="Confirm").click()


async def read_token(page: Page) -> str:
    return await page.locator("#token").inner_text()


async def wait_for_end(socket: NodeSocket) -> None:
    async with asyncio.timeout(ENDS_WITHIN_S):
        assert await socket.close_code() == 4401


async def test_token_can_be_created_rotated_and_revoked_after_sign_up(person: Visitor) -> None:
    page, gateway = person.page, person.site.replace("http", "ws")
    await sign_up(person)
    await page.get_by_role("button", name="Create a node").click()
    async with node_socket(gateway, await read_token(page)) as socket:
        await page.get_by_role("link", name="I have saved it").click()
        await page.get_by_label("Title").fill("Kitchen laptop")
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Kitchen laptop")
        await page.get_by_role("button", name="New token").click()
        await expect(page.locator("#token")).to_be_visible()
        await wait_for_end(socket)
    async with node_socket(gateway, await read_token(page)) as socket:
        await page.get_by_role("link", name="My nodes").click()
        await expect(page.locator("#own-nodes")).to_contain_text("connected")
        await page.get_by_role("link", name=re.compile("^Manage")).click()
        await page.get_by_role("button", name="Revoke the token").click()
        await expect(page.locator("main")).to_contain_text("token revoked")
        await wait_for_end(socket)
    assert person.complaints == []


async def test_account_page_shows_a_connecting_node_without_reload(person: Visitor) -> None:
    page, gateway = person.page, person.site.replace("http", "ws")
    await sign_up(person)
    await page.get_by_role("button", name="Create a node").click()
    token = await read_token(page)
    await person.open("/account/")
    await expect(page.locator("#own-nodes")).to_contain_text("never seen")
    async with node_socket(gateway, token):
        await expect(page.locator("#own-nodes")).to_contain_text("connected", timeout=15_000)


async def test_account_can_sign_in_with_a_passkey(person: Visitor) -> None:
    page = person.page
    devices = await page.context.new_cdp_session(page)
    await devices.send("WebAuthn.enable")
    authenticator = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    await devices.send("WebAuthn.addVirtualAuthenticator", {"options": authenticator})
    await sign_up(person)
    await page.goto(f"{person.site}/account/2fa/webauthn/add/")
    await confirm_password(page)
    await page.locator("[name=passwordless]").check()
    await page.locator("#mfa_webauthn_add").click()
    await expect(page).to_have_url(re.compile("/account/2fa/(recovery-codes/|webauthn/$)"))
    await page.goto(f"{person.site}/account/logout/")
    await page.locator("main form button[type=submit]").click()
    await page.goto(f"{person.site}/account/login/")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page).to_have_url(f"{person.site}/account/")
    assert person.complaints == []


async def test_alert_is_shown_if_the_passkey_was_not_used(person: Visitor) -> None:
    page = person.page
    await page.add_init_script("navigator.credentials.get = () => Promise.reject(new Error())")
    await person.open("/account/login/")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("alert")).to_contain_text("was not used")
    assert person.complaints == []


async def test_page_with_a_new_secret_is_not_refreshed(person: Visitor) -> None:
    """A refresh would replace the secret, so the code just scanned would be invalid."""
    page, requested = person.page, []
    await sign_up(person)
    await page.clock.install()
    await page.goto(f"{person.site}/account/2fa/totp/activate/")
    await confirm_password(page)
    await page.wait_for_selector("#link.live")
    page.on("request", lambda request: requested.append(request.url))
    await sync_to_async(make_season)("Autumn")
    await sync_to_async(bus.ring)(bus.VIEWERS)
    await expect(page.locator("#pill")).to_contain_text("The next round")
    # In this time all other pages are refreshed.
    await page.clock.run_for(5000)
    assert requested == []


@sync_to_async
def make_heron() -> None:
    """Create the account `heron` with a public profile and a judged node of that name."""
    heron = User.objects.create_user("heron", "heron@example.org", PASSWORD)
    nodes = judge_nodes(make_season("Autumn"), count=1)
    Node.objects.filter(pk=nodes[0].pk).update(owner=heron, name="heron", title="Mine")
    show_profile(heron, is_public=True)


@pytest.mark.parametrize("language", ["en", "fa"])
async def test_account_pages_have_no_serious_accessibility_faults(
    transactional_db: None, site: str, browser: Browser, language: str
) -> None:
    await make_heron()
    async with visiting(browser, site) as visitor:
        page = visitor.page
        entrance = await tour(visitor, [f"/account/{path}" for path in ENTRANCE], language)
        await page.goto(f"{site}/account/login/")
        await page.locator("[name=login]").fill("heron")
        await page.locator("[name=password]").fill(PASSWORD)
        await page.locator("main form.sheet button[type=submit]").click()
        await page.goto(f"{site}/account/reauthenticate/")
        await page.locator("[name=password]").fill(PASSWORD)
        await page.locator("main form.sheet button[type=submit]").click()
        own = await tour(
            visitor, [*(f"/account/{path}" for path in OWN), "/owners/heron/"], language
        )
    for seen in (entrance, own):
        assert "\n".join(seen.faults) == ""
        assert (seen.too_wide, seen.asked_elsewhere) == ([], [])
    assert own.complaints == []
