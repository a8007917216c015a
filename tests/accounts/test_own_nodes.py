"""Test the nodes of an account: account page, titles and tokens."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from judge.models import Round
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate
from tests.factories import make_node, make_round, make_score, make_season, publish

pytestmark = pytest.mark.django_db


def make_own(owner: User, name: str = "amber", **fields: Any) -> tuple[Node, str]:
    """Create a node of an account and return it with its token."""
    node, token = make_node(name)
    Node.objects.filter(pk=node.pk).update(owner=owner, **fields)
    return Node.objects.get(pk=node.pk), token


def create_via_page(client: Client, title: str = "") -> Any:
    return client.post("/account/nodes/", {"title": title})


def read_token(page: Any) -> str:
    found = re.search(r"swarm_[\w-]{43}", page.content.decode())
    assert found is not None
    return found[0]


def read_row(client: Client, name: str) -> str:
    """Return the text of a node's row on the account page."""
    page = client.get("/account/").content.decode()
    found = re.search(rf'<tr data-node="{name}">.*?</tr>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


# ---- the account page


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "never seen"),
        ({"last_seen": timezone.now() + timedelta(hours=1)}, "connected"),
        ({"last_seen": timezone.now() - timedelta(hours=1)}, "seen"),
        ({"blocked": True}, "blocked by the operator"),
        ({"client_version": "0.0.9"}, "0.0.9 needs 0.1.0 or newer"),
        ({"client_version": "not a version"}, "not a version"),
    ],
)
def test_account_page_shows_the_state_of_a_node(
    signed_in: Client, olive: User, fields: dict[str, Any], shown: str
) -> None:
    make_own(olive, **fields)
    assert shown in read_row(signed_in, "amber")


def test_account_page_requests_no_update_of_a_current_client(
    signed_in: Client, olive: User
) -> None:
    make_own(olive, client_version="0.1.0")
    assert "or newer" not in read_row(signed_in, "amber")


def test_account_page_shows_the_latest_score_and_the_rank(signed_in: Client, olive: User) -> None:
    node, _ = make_own(olive)
    season = make_season(minimum_questions=16)
    for correct in (4, 12):
        judge_round = make_round(season, phase=Round.Phase.CLOSED)
        make_score(judge_round, node, correct=correct)
    publish(season)
    assert f".750 round {judge_round.number} 1" in read_row(signed_in, "amber")


def test_account_page_takes_few_queries_for_many_nodes(
    signed_in: Client, olive: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        make_own(olive, f"node-{number}")
    # Fewer than one per node; five of them read the site's state, which production caches.
    with django_assert_max_num_queries(17):
        signed_in.get("/account/")


def test_account_page_shows_only_own_nodes(signed_in: Client) -> None:
    make_own(User.objects.create_user("oscar"), "oscars")
    assert "oscars" not in signed_in.get("/account/").content.decode()


def test_account_page_redirects_anonymous_users_to_login(client: Client) -> None:
    assert client.get("/account/")["Location"] == "/account/login/?next=/account/"


# ---- creating


def test_created_node_has_owner_title_and_token(signed_in: Client, olive: User) -> None:
    token = read_token(create_via_page(signed_in, "Kitchen laptop"))
    node = authenticate(token)
    assert node is not None
    assert (node.owner, node.title) == (olive, "Kitchen laptop")


def test_token_is_shown_only_once(signed_in: Client) -> None:
    token = read_token(create_via_page(signed_in))
    for path in ("/account/", "/account/nodes/", f"/account/nodes/{Node.objects.get().name}/"):
        assert token not in signed_in.get(path, follow=True).content.decode()


@pytest.mark.parametrize(
    "title",
    [
        *("a\u202eb", "a\nb", "a\u200eb", "a\x00b", "x" * 65, "\u2066a", "a\u2028b"),
        *("\u200c\u200d", "\u3164", "\u2800 \ufe0f", "\ufe0f", "a" + 5 * "\u0301"),
        "a" + 5 * "\u0301\u200d",
    ],
)
def test_misleading_title_is_rejected(signed_in: Client, title: str) -> None:
    answer = create_via_page(signed_in, title)
    assert "errorlist" in answer.content.decode()
    assert not Node.objects.exists()


@pytest.mark.parametrize(
    "title", ["نیم‌فاصله", "厨房", "👩‍💻 at home", "❤️", "Hồ Chí Minh", "हिन्दी", "", "x" * 64]
)
def test_title_may_be_in_any_language(signed_in: Client, title: str) -> None:
    create_via_page(signed_in, title)
    assert Node.objects.get().title == title


def test_title_is_escaped(signed_in: Client) -> None:
    create_via_page(signed_in, "<b>bold</b>")
    name = Node.objects.get().name
    for path in ("/account/", f"/account/nodes/{name}/", f"/nodes/{name}/"):
        page = signed_in.get(path).content.decode()
        assert "<b>bold" not in page
        assert "&lt;b&gt;bold" in page


@pytest.mark.parametrize(
    "title",
    ["Amber-owl", "am\u200dber-owl", "ａｍｂｅｒ‐owl", "amber-o\u034fwl", "amber\u2212owl"],
)
def test_title_confusable_with_a_node_name_is_rejected(signed_in: Client, title: str) -> None:
    make_node("amber-owl")
    assert "errorlist" in create_via_page(signed_in, title).content.decode()
    assert Node.objects.count() == 1


def test_number_of_nodes_per_account_is_limited(signed_in: Client, settings: Settings) -> None:
    settings.NODES_PER_ACCOUNT = 2
    assert [create_via_page(signed_in).status_code for _ in range(3)] == [200, 200, 403]
    assert Node.objects.count() == 2


def test_number_of_new_nodes_per_hour_is_limited(signed_in: Client, settings: Settings) -> None:
    settings.NEW_NODES_PER_HOUR = 2
    answers = [create_via_page(signed_in) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["code"] == "nodes.too_fast"
    Node.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert create_via_page(signed_in).status_code == 200


# ---- renaming, tokens


def test_changed_title_is_shown_on_the_node_page_beside_the_name(
    signed_in: Client, olive: User
) -> None:
    node, _ = make_own(olive)
    signed_in.post("/account/nodes/amber/", {"title": "Kitchen laptop"})
    assert Node.objects.get(pk=node.pk).name == "amber"
    page = Client().get("/nodes/amber/").content.decode()
    assert re.search(r"<h1><span[^>]*>Kitchen laptop</span>", page)
    assert '<code class="name">amber</code>' in page


def test_rejected_title_is_redisplayed_in_the_form_and_not_saved(
    signed_in: Client, olive: User
) -> None:
    make_own(olive, title="before")
    page = signed_in.post("/account/nodes/amber/", {"title": "x" * 65}).content.decode()
    assert "x" * 65 in page
    assert Node.objects.get().title == "before"


def test_leaderboard_and_api_contain_titles(signed_in: Client, olive: User) -> None:
    node, _ = make_own(olive, title="Kitchen laptop")
    season = make_season()
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=12)
    publish(season)
    assert "Kitchen laptop" in Client().get("/leaderboard/").content.decode()
    (item,) = Client().get("/api/v1/leaderboard").json()["items"]
    assert (item["node"], item["title"]) == ("amber", "Kitchen laptop")


def test_new_token_invalidates_the_old_one(signed_in: Client, olive: User) -> None:
    node, old = make_own(olive)
    new = read_token(signed_in.post("/account/nodes/amber/token/"))
    assert authenticate(old) is None
    assert authenticate(new) == node


def test_revoked_node_has_no_valid_token_until_it_gets_a_new_one(
    signed_in: Client, olive: User
) -> None:
    node, old = make_own(olive)
    signed_in.post("/account/nodes/amber/revoke/")
    assert authenticate(old) is None
    assert authenticate(Node.objects.get().token_hash) is None
    assert "token revoked" in read_row(signed_in, "amber")
    assert authenticate(read_token(signed_in.post("/account/nodes/amber/token/"))) == node
    assert "token revoked" not in read_row(signed_in, "amber")


def test_several_nodes_can_be_revoked(signed_in: Client, olive: User) -> None:
    for name in ("amber", "bold"):
        make_own(olive, name)
        assert signed_in.post(f"/account/nodes/{name}/revoke/").status_code == 302


@pytest.mark.parametrize("path", ["", "token/", "revoke/"])
def test_node_of_another_account_is_not_found(signed_in: Client, path: str) -> None:
    node, token = make_own(User.objects.create_user("oscar"), "oscars", title="before")
    for answer in (
        signed_in.get(f"/account/nodes/oscars/{path}"),
        signed_in.post(f"/account/nodes/oscars/{path}", {"title": "after"}),
    ):
        assert answer.status_code == 404
    assert authenticate(token) == node
    assert Node.objects.get().title == "before"


@pytest.mark.parametrize("path", ["token/", "revoke/"])
def test_get_request_changes_no_token(signed_in: Client, olive: User, path: str) -> None:
    node, token = make_own(olive)
    signed_in.get(f"/account/nodes/amber/{path}")
    assert authenticate(token) == node


@pytest.mark.parametrize(
    "path",
    [
        *("nodes/", "nodes/amber/", "nodes/amber/token/", "nodes/amber/revoke/"),
        *("data/", "delete/"),
    ],
)
def test_post_without_csrf_token_is_rejected(olive: User, path: str) -> None:
    make_own(olive)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    assert browser.post(f"/account/{path}", {"title": "x"}).status_code == 403
