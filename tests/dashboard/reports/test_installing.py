"""Test that page and documentation have the same lines to install and update the client."""

import html
import json
import re
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from swarm_web.dashboard.reports.installing import (
    COSTS,
    Cost,
    write_install_lines,
    write_update_lines,
)
from tests.processes import PROJECT

TEXTS = ["README.md", "docs/client.md", "docs/lab.md", "docs/training.md", "node_client/README.md"]
RESULTS = PROJECT / "bench" / "results" / "joining.json"


def split_lines(site: str) -> set[str]:
    """Return each line that installs or updates the client from a site."""
    tables = (write_install_lines(site), write_update_lines(site))
    return {
        line
        for builds in tables
        for tools in builds.values()
        for lines in tools.values()
        for line in lines.splitlines()
    }


@pytest.mark.parametrize("path", TEXTS)
def test_text_contains_only_lines_of_the_join_page(path: str) -> None:
    text = Path(PROJECT / path).read_text()
    found = re.findall(r"(?:uv tool|pipx|pip|~/\S+/python -m pip) [^`\n]*-index[^`\n]*", text)
    assert found
    written = split_lines("https://SITE") | split_lines("https://swarm.example.org")
    assert {re.sub(r"'swarm-node\[.*?\]'", "swarm-node", line) for line in found} <= written


@pytest.mark.parametrize("path", ["README.md", "docs/client.md"])
def test_docs_contain_the_lines_of_each_tool(path: str) -> None:
    text = Path(PROJECT / path).read_text()
    for lines in write_install_lines("https://SITE")["cpu"].values():
        assert lines in text


@pytest.mark.django_db
def test_page_shows_all_lines_with_its_own_address(client: Client, settings: Settings) -> None:
    settings.SITE_URL = "https://swarm.example.net"
    page = html.unescape(client.get("/join/").content.decode())
    assert all(line in page for line in split_lines("https://swarm.example.net"))
    assert "--extra-index-url" not in page


@pytest.mark.django_db
@pytest.mark.parametrize("allowed", [True, False])
def test_page_offers_anonymous_joining_only_if_the_site_allows_it(
    client: Client, settings: Settings, allowed: bool
) -> None:
    settings.ANONYMOUS_JOIN = allowed
    assert ("--anonymous" in client.get("/join/").content.decode()) == allowed


def test_costs_on_the_page_equal_the_measured_ones() -> None:
    measured = json.loads(RESULTS.read_text())["figures"]
    found = {f"{build}-{tool}": cost for build, of in COSTS.items() for tool, cost in of.items()}
    assert found == {
        line: Cost(took["download"], took["disk"], round(took["seconds"]))
        for line, took in measured.items()
    }
