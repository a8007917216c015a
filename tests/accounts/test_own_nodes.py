"""One's own nodes: what the account page tells of them, their titles and their tokens."""

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
    """Make a node of an account and return it with its token."""
    node, token = make_node(name)
    Node.objects.filter(pk=node.pk).update(owner=owner, **fields)
    return Node.objects.get(pk=node.pk), token


def create(client: Client, title: str = "") -> Any:
    return client.post("/account/nodes/", {"title": title})


def read_token(page: Any) -> str:
    found = re.search(r"swarm_[\w-]{43}", page.content.decode())
    assert found is not None
    return found[0]


def read_row(client: Client, name: str) -> str:
    """Return a node's row of the account page, without its tags."""
    page = client.get("/account/").content.decode()
    found = re.search(rf'<tr data-node="{name}">.*?</tr>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


# ---- what is told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "never seen"),
        ({"last_seen": timezone.now() + timedelta(hours=1)}, "connected"),
        ({"last_seen": timezone.now() - timedelta(hours=1)}, "seen"),
        ({"blocked": True}, "blocked by the operator"),
        ({"client_version": "0.0.9"}, "0.0.9 needs 0.1.0 or newer"),
        ({"client_version": "not a version"}, "not a version"),
    ],
)
def test_the_page_tells_how_a_node_is(
    signed_in: Client, olive: User, fields: dict[str, Any], told: str
) -> None:
    make_own(olive, **fields)
    assert told in read_row(signed_in, "amber")


def test_a_client_that_is_new_enough_needs_no_other(signed_in: Client, olive: User) -> None:
    make_own(olive, client_version="0.1.0")
    assert "or newer" not in read_row(signed_in, "amber")


def test_the_page_tells_the_newest_score_and_the_rank(signed_in: Client, olive: User) -> None:
    node, _ = make_own(olive)
    season = make_season(minimum_questions=16)
    for correct in (4, 12):
        judge_round = make_round(season, phase=Round.Phase.CLOSED)
        make_score(judge_round, node, correct=correct)
    publish(season)
    assert f".750 round {judge_round.number} 1" in read_row(signed_in, "amber")


def test_the_page_takes_as_many_queries_for_many_nodes(
    signed_in: Client, olive: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        make_own(olive, f"node-{number}")
    with django_assert_max_num_queries(12):
        signed_in.get("/account/")


def test_the_page_tells_of_ones_own_nodes_only(signed_in: Client) -> None:
    make_own(User.objects.create_user("oscar"), "oscars")
    assert "oscars" not in signed_in.get("/account/").content.decode()


def test_strangers_are_asked_to_sign_in(client: Client) -> None:
    assert client.get("/account/")["Location"] == "/account/login/?next=/account/"


# ---- creating


def test_a_new_node_has_its_owner_its_title_and_a_token(signed_in: Client, olive: User) -> None:
    token = read_token(create(signed_in, "Kitchen laptop"))
    node = authenticate(token)
    assert node is not None
    assert (node.owner, node.title) == (olive, "Kitchen laptop")


def test_a_token_is_shown_once(signed_in: Client) -> None:
    token = read_token(create(signed_in))
    for path in ("/account/", "/account/nodes/", f"/account/nodes/{Node.objects.get().name}/"):
        assert token not in signed_in.get(path, follow=True).content.decode()


@pytest.mark.parametrize(
    "title",
    [
        *("a\u202eb", "a\nb", "a\u200eb", "a\x00b", "x" * 65, "\u2066a", "a\u2028b"),
        *("\u200c\u200d", "\u3164", "\u2800 \ufe0f", "\ufe0f", "a" + 5 * "\u0301"),
    ],
)
def test_a_title_that_would_mislead_is_refused(signed_in: Client, title: str) -> None:
    answer = create(signed_in, title)
    assert "errorlist" in answer.content.decode()
    assert not Node.objects.exists()


@pytest.mark.parametrize(
    "title", ["نیم‌فاصله", "厨房", "👩‍💻 at home", "❤️", "Hồ Chí Minh", "हिन्दी", "", "x" * 64]
)
def test_a_title_may_be_in_any_language(signed_in: Client, title: str) -> None:
    create(signed_in, title)
    assert Node.objects.get().title == title


def test_a_title_is_text_and_no_markup(signed_in: Client) -> None:
    create(signed_in, "<b>bold</b>")
    name = Node.objects.get().name
    for path in ("/account/", f"/account/nodes/{name}/", f"/nodes/{name}/"):
        page = signed_in.get(path).content.decode()
        assert "<b>bold" not in page
        assert "&lt;b&gt;bold" in page


@pytest.mark.parametrize(
    "title", ["Amber-owl", "am\u200dber-owl", "ａｍｂｅｒ‐owl", "amber-o\u034fwl"]
)
def test_a_title_that_reads_as_a_nodes_name_is_refused(signed_in: Client, title: str) -> None:
    make_node("amber-owl")
    assert "errorlist" in create(signed_in, title).content.decode()
    assert Node.objects.count() == 1


def test_an_account_owns_so_many_nodes_and_no_more(signed_in: Client, settings: Settings) -> None:
    settings.NODES_PER_ACCOUNT = 2
    assert [create(signed_in).status_code for _ in range(3)] == [200, 200, 403]
    assert Node.objects.count() == 2


def test_an_account_makes_so_many_nodes_an_hour(signed_in: Client, settings: Settings) -> None:
    settings.NEW_NODES_PER_HOUR = 2
    answers = [create(signed_in) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["code"] == "nodes.too_fast"
    Node.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert create(signed_in).status_code == 200


# ---- renaming, tokens


def test_a_new_title_changes_what_pages_call_the_node(signed_in: Client, olive: User) -> None:
    node, _ = make_own(olive)
    signed_in.post("/account/nodes/amber/", {"title": "Kitchen laptop"})
    assert Node.objects.get(pk=node.pk).name == "amber"
    page = Client().get("/nodes/amber/").content.decode()
    assert re.search(r"<h1><span[^>]*>Kitchen laptop</span>", page)
    assert '<code class="name">amber</code>' in page


def test_a_title_that_is_refused_stays_in_the_form(signed_in: Client, olive: User) -> None:
    make_own(olive, title="before")
    page = signed_in.post("/account/nodes/amber/", {"title": "x" * 65}).content.decode()
    assert "x" * 65 in page
    assert Node.objects.get().title == "before"


def test_the_leaderboard_and_the_api_tell_titles(signed_in: Client, olive: User) -> None:
    node, _ = make_own(olive, title="Kitchen laptop")
    season = make_season()
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=12)
    publish(season)
    assert "Kitchen laptop" in Client().get("/leaderboard/").content.decode()
    (item,) = Client().get("/api/v1/leaderboard").json()["items"]
    assert (item["node"], item["title"]) == ("amber", "Kitchen laptop")


def test_a_new_token_ends_the_old_one(signed_in: Client, olive: User) -> None:
    node, old = make_own(olive)
    new = read_token(signed_in.post("/account/nodes/amber/token/"))
    assert authenticate(old) is None
    assert authenticate(new) == node


def test_a_revoked_node_has_no_token_until_it_gets_a_new_one(
    signed_in: Client, olive: User
) -> None:
    node, old = make_own(olive)
    signed_in.post("/account/nodes/amber/revoke/")
    assert authenticate(old) is None
    assert authenticate(Node.objects.get().token_hash) is None
    assert "token revoked" in read_row(signed_in, "amber")
    assert authenticate(read_token(signed_in.post("/account/nodes/amber/token/"))) == node
    assert "token revoked" not in read_row(signed_in, "amber")


def test_two_nodes_are_revoked(signed_in: Client, olive: User) -> None:
    for name in ("amber", "bold"):
        make_own(olive, name)
        assert signed_in.post(f"/account/nodes/{name}/revoke/").status_code == 302


@pytest.mark.parametrize("path", ["", "token/", "revoke/"])
def test_a_node_of_somebody_else_is_not_found(signed_in: Client, path: str) -> None:
    node, token = make_own(User.objects.create_user("oscar"), "oscars", title="before")
    for answer in (
        signed_in.get(f"/account/nodes/oscars/{path}"),
        signed_in.post(f"/account/nodes/oscars/{path}", {"title": "after"}),
    ):
        assert answer.status_code == 404
    assert authenticate(token) == node
    assert Node.objects.get().title == "before"


@pytest.mark.parametrize("path", ["token/", "revoke/"])
def test_a_link_alone_changes_nothing(signed_in: Client, olive: User, path: str) -> None:
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
def test_forms_of_other_sites_are_refused(olive: User, path: str) -> None:
    make_own(olive)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olive)
    assert browser.post(f"/account/{path}", {"title": "x"}).status_code == 403
