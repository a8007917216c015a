"""Test /robots.txt (RFC 9309) and /favicon.ico."""

import io
import re

import pytest
from django.test import Client
from PIL import Image


def is_allowed(rules: str, path: str) -> bool:
    """Apply RFC 9309: the longest matching rule decides, and without any the path is allowed."""
    found = re.findall(r"^(Allow|Disallow): (\S+)$", rules, flags=re.MULTILINE)
    matching = [
        (len(rule), kind == "Allow")
        for kind, rule in found
        if re.match(re.escape(rule).replace(r"\*", ".*").replace(r"\$", "$"), path)
    ]
    return max(matching, default=(0, True))[1]


@pytest.fixture
def rules(client: Client) -> str:
    answer = client.get("/robots.txt")
    assert (answer.status_code, answer.headers["Content-Type"][:10]) == (200, "text/plain")
    return answer.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/leaderboard/", "/nodes/amber-quiet-heron/", "/nodes/amber-quiet-heron/card.png"),
        *("/rounds/", "/rounds/?before=120", "/rounds/12/", "/rounds/12/questions/3/"),
        *("/lab/", "/lab/sharing/"),
        *("/rollouts/", "/rollouts/7/", "/tasks/chain_sum/", "/downloads/", "/api/docs"),
        "/static/css/site.css",
    ],
)
def test_robots_may_read_pages(rules: str, path: str) -> None:
    assert is_allowed(rules, path)


@pytest.mark.parametrize(
    "path",
    [
        *("/admin/", "/admin/nodes/node/", "/account/", "/api/v1/leaderboard", "/api/openapi.json"),
        *("/downloads/rewards.csv", "/downloads/rollouts.jsonl", "/rounds/12/answers.jsonl"),
        *("/rounds/12/rewards.parquet", "/leaderboard/?arm=base&after=50", "/rollouts/?q=a"),
        *("/lab/sharing/runs.tar.gz", "/lab/sharing/report.json", "/lab/sharing/?arm=4%2F4"),
        *("/rollouts/flow/?hour=2001-01-01T00", "/?lang=fa", "/rounds/?season=One&before=3"),
        *("/metrics", "/readyz"),
    ],
)
def test_robots_may_not_read_data_accounts_or_endless_queries(rules: str, path: str) -> None:
    assert not is_allowed(rules, path)


def test_icon_has_the_usual_sizes(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/x-icon")
    icon = Image.open(io.BytesIO(answer.content))
    assert icon.info["sizes"] == {(16, 16), (32, 32), (48, 48)}


def test_icon_is_cached_for_a_day_and_revalidated_with_an_etag(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.headers["Cache-Control"] == "public, max-age=86400"
    again = client.get("/favicon.ico", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/robots.txt", "/favicon.ico"])
def test_files_do_not_vary_by_language(client: Client, path: str) -> None:
    answer = client.get(path, headers={"Accept-Language": "fa"})
    assert "Accept-Language" not in answer.headers.get("Vary", "")
