"""Test joining with a device code: the client on one machine, the browser on another."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import Browser, expect

from node_client.commands.problems import REFUSED
from swarm_web.nodes.models import Node
from tests.browser.conftest import Visitor, visiting
from tests.node_client.forked import running_forked
from tests.processes import eventually
from tests.web import serving

pytestmark = [pytest.mark.browser, pytest.mark.swarm, pytest.mark.asyncio(loop_scope="session")]

PASSWORD = "seven wise herons"
# The time within which a socket is closed after its token was revoked.
CUT_OFF_S = 2.0


class Machine:
    """A machine without a browser, on which swarm-node commands run and write logs."""

    def __init__(self, site: str, folder: Path, processes: ExitStack) -> None:
        self._site, self._folder, self._processes = site, folder, processes

    def run(self, command: str, *options: str) -> BaseProcess:
        """Start a command whose log has its name."""
        arguments = [command, self._site, "--state-dir", str(self._folder / "state"), *options]
        return self._processes.enter_context(
            running_forked("node_client", *arguments, log=self._folder / f"{command}.log")
        )

    def log_of(self, command: str) -> str:
        log = self._folder / f"{command}.log"
        return log.read_text() if log.exists() else ""

    def shown_code(self, command: str) -> str:
        """Return the code that a command shows, as soon as it is in the log."""
        code = r"\b[B-Z]{4}-[B-Z]{4}\b"
        found = eventually(
            lambda: re.search(code, self.log_of(command)), within_s=60, what="a code is shown"
        )
        assert found is not None
        return found[0]


@pytest.fixture
def public_site(transactional_db: None) -> Iterator[str]:
    with serving(ANONYMOUS_JOIN="true") as address:
        httpx.get(f"{address}/healthz", timeout=60)
        yield address


@pytest.fixture
def machine(public_site: str, tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as processes:
        yield Machine(public_site, tmp_path, processes)


@pytest_asyncio.fixture(loop_scope="session")
async def newcomer(public_site: str, browser: Browser) -> AsyncIterator[Visitor]:
    """A visitor who has just created an account."""
    async with visiting(browser, public_site) as visitor:
        page = visitor.page
        await page.goto(f"{public_site}/account/signup/")
        await page.fill("[name=username]", "olive")
        await page.fill("[name=password1]", PASSWORD)
        await page.fill("[name=password2]", PASSWORD)
        await page.click("form.sheet button[type=submit]")
        await page.wait_for_url(f"{public_site}/account/")
        yield visitor


def is_live(name: str) -> bool:
    return Node.objects.connected(now=timezone.now()).filter(name=name).exists()


async def until(condition: object, *, within_s: float, what: str) -> None:
    """Wait for an effect of other processes without blocking the browser's event loop."""
    await sync_to_async(eventually)(condition, within_s=within_s, what=what)  # type: ignore[arg-type]


async def enter(visitor: Visitor, code: str) -> None:
    """Type a code in lower case, as a person may do."""
    await visitor.page.goto(f"{visitor.site}/device/")
    await visitor.page.fill("[name=code]", code.lower())
    await visitor.page.click("form.sheet button[type=submit]")


async def test_newcomer_joins_with_a_code(newcomer: Visitor, machine: Machine) -> None:
    machine.run("join", "--model", "tiny", "--plain")
    await enter(newcomer, await sync_to_async(machine.shown_code)("join"))
    await newcomer.page.fill("[name=name]", "heron")
    await newcomer.page.click("[value=approve]")
    await expect(newcomer.page.locator("#machine")).to_contain_text(
        "heron has joined", timeout=60_000
    )
    assert "This node is heron" in machine.log_of("join")
    assert newcomer.complaints == []


async def test_owner_renames_a_node_and_revokes_its_tokens(
    newcomer: Visitor, machine: Machine, tmp_path: Path
) -> None:
    client = machine.run("join", "--model", "tiny", "--plain")
    await enter(newcomer, await sync_to_async(machine.shown_code)("join"))
    await newcomer.page.fill("[name=name]", "heron")
    await newcomer.page.click("[value=approve]")
    await until(lambda: is_live("heron"), within_s=60, what="the node is connected")
    page = newcomer.page
    manage = f"{newcomer.site}/account/nodes/heron/"

    await page.goto(manage)
    await page.fill("[name=title]", "Grey Heron")
    await page.click("#rename button")
    await page.goto(f"{newcomer.site}/nodes/heron/")
    await expect(page.locator("h1")).to_contain_text("Grey Heron")

    await page.goto(manage)
    await page.click("#token .plain")
    token = await page.locator("#token").inner_text()
    await until(lambda: not is_live("heron"), within_s=CUT_OFF_S, what="the old socket is closed")
    await until(lambda: client.exitcode is not None, within_s=30, what="the client exits")
    assert client.exitcode == REFUSED
    assert "swarm-node login" in machine.log_of("join")

    (tmp_path / "token").write_text(token)
    client = machine.run("join", "--token-file", str(tmp_path / "token"), "--plain")
    await until(lambda: is_live("heron"), within_s=60, what="the node is connected again")
    await page.goto(manage)
    await page.click("#token .danger")
    await until(lambda: not is_live("heron"), within_s=CUT_OFF_S, what="the socket is closed")
    await until(lambda: client.exitcode is not None, within_s=30, what="the client exits")
    assert client.exitcode == REFUSED


async def test_anonymous_node_is_claimed_while_it_runs(newcomer: Visitor, machine: Machine) -> None:
    machine.run("join", "--anonymous", "--model", "tiny", "--plain")
    await until(
        lambda: "connected as" in machine.log_of("join"), within_s=60, what="the node is connected"
    )
    node = await Node.objects.aget()
    assert node.owner_id is None
    machine.run("claim")
    await enter(newcomer, await sync_to_async(machine.shown_code)("claim"))
    await newcomer.page.click("[value=approve]")
    await expect(newcomer.page.locator("#machine")).to_contain_text("has joined")
    await until(
        lambda: "belongs to your account" in machine.log_of("claim"),
        within_s=20,
        what="the claim is confirmed",
    )
    await node.arefresh_from_db()
    assert node.owner_id is not None
    assert await sync_to_async(is_live)(node.name)
