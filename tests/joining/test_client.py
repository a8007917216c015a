"""Test the client's side of joining against a real web process."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rich.console import Console
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands import joining
from node_client.commands.problems import FAILED, REFUSED
from node_client.errors import CoordinatorRefusedError, NodeError
from node_client.settings.config import choose
from node_client.site import Site, parse_site
from node_client.storage.state import NODE, NodeRecord, StateDir
from node_client.swarm.device_flow import DeviceFlow
from swarm_web.joining import services
from swarm_web.joining.models import JoinRequest
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node
from tests.web import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def site(transactional_db: None) -> Iterator[Site]:
    with serving(ANONYMOUS_JOIN="true") as address:
        httpx.get(f"{address}/healthz", timeout=60)  # waits until the process is up
        yield parse_site(address)


def waiting_request() -> JoinRequest:
    return JoinRequest.objects.get(decision=JoinRequest.Decision.WAITING)


def flow_with_callback(site: Site, happens: Callable[[], object]) -> DeviceFlow:
    """Return a flow that calls a function, and advances its clock, instead of sleeping."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds
        happens()

    return DeviceFlow(site, sleep=sleep, clock=lambda: passed[0])


def approve() -> None:
    services.approve_new(
        waiting_request(), User.objects.create_user("olive"), name="heron", now=timezone.now()
    )


def test_client_receives_the_token_of_the_approved_node(site: Site) -> None:
    flow = flow_with_callback(site, approve)
    given = flow.await_token(flow.request_code(model="tiny"))
    node = authenticate(given.access_token)
    assert node is not None
    assert node.name == given.node == "heron"


def test_declined_client_fails_with_refused_error(site: Site) -> None:
    flow = flow_with_callback(site, lambda: services.deny(waiting_request()))
    with pytest.raises(CoordinatorRefusedError, match="declined"):
        flow.await_token(flow.request_code())


def test_token_file_is_readable_only_by_its_owner_and_token_is_not_printed(
    site: Site, tmp_path: Path
) -> None:
    choices = choose(site, flags={"state_dir": str(tmp_path / "state")}, environment={})
    console = Console(record=True, force_terminal=False)
    token = joining.get_token(choices, console=console, anonymous=True)
    file = tmp_path / "state" / NODE
    assert StateDir(tmp_path / "state").load_for(site).token == token
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert token not in console.export_text()


def test_logout_deletes_the_token_and_keeps_the_node_record(site: Site, tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.save(NodeRecord(url=site.base, token="swarm_t", node="heron", model="tiny"))
    result = CliRunner().invoke(app, ["logout", site.base, "--state-dir", str(tmp_path)])
    assert result.exit_code == 0
    assert state.load() == NodeRecord(url=site.base, node="heron", model="tiny")


def test_claiming_a_node_with_an_owner_is_refused(site: Site, tmp_path: Path) -> None:
    _, token = create_node(owner=User.objects.create_user("olive"))
    result = CliRunner().invoke(
        app, ["claim", site.base, "--token", token, "--state-dir", str(tmp_path)]
    )
    assert result.exit_code == REFUSED
    assert "belongs to an account" in result.output


def test_claimed_node_belongs_to_the_account_that_approved(site: Site) -> None:
    _, token = create_node(name="heron")
    olive = User.objects.create_user("olive")
    flow = flow_with_callback(
        site, lambda: services.approve_claim(waiting_request(), olive, now=timezone.now())
    )
    assert flow.await_token(flow.request_code(token=token)).node == "heron"
    assert Node.objects.get(name="heron").owner == olive


def test_error_for_a_site_without_device_codes_suggests_a_token_file(
    site: Site, tmp_path: Path
) -> None:
    elsewhere = Site(base=site.base + "/status")  # Django answers with a page, not JSON
    with pytest.raises(NodeError, match="did not issue a code") as problem:
        DeviceFlow(elsewhere).request_code()
    assert "--token-file" in problem.value.fix


def test_login_to_an_unreachable_site_fails_and_names_its_address(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["login", "http://127.0.0.1:9", "--state-dir", str(tmp_path)])
    assert result.exit_code == FAILED
    assert "http://127.0.0.1:9" in result.output


def test_verification_page_exists(site: Site) -> None:
    code = DeviceFlow(site).request_code()
    assert httpx.get(code.verification_uri).status_code == 302
    assert services.find_open(JoinRequest.objects.get().user_code, now=timezone.now())
