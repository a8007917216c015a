"""Test the admin of nodes: creating a node, rotating its token, blocking it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(transactional_db: None) -> Client:
    """Return a client that is signed in as a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("olive"))
    return client


def read_token(page: str) -> str:
    return page.split("shown only now: ")[1].split("<")[0].strip()


def test_token_of_created_node_is_shown_once_and_authenticates(operator: Client) -> None:
    page = operator.post(
        "/admin/nodes/node/add/", {"name": "amber-quiet-heron", "arm": "swarm"}, follow=True
    ).content.decode()
    token = read_token(page)
    assert authenticate(token) == Node.objects.get(name="amber-quiet-heron")
    assert token not in operator.get("/admin/nodes/node/").content.decode()


def test_created_node_has_the_values_of_the_form(operator: Client) -> None:
    owner = User.objects.create_user("ada")
    form = {"name": "amber", "title": "Attic", "arm": "isolated", "owner": owner.pk}
    operator.post("/admin/nodes/node/add/", form)
    node = Node.objects.get()
    assert (node.title, node.arm, node.owner) == ("Attic", "isolated", owner)


def test_old_token_is_rejected_after_give_new_token_action(operator: Client) -> None:
    node, old = create_node(name="amber")
    page = operator.post(
        "/admin/nodes/node/",
        {"action": "give_new_token", "_selected_action": [node.pk]},
        follow=True,
    ).content.decode()
    assert authenticate(old) is None
    assert authenticate(read_token(page)) == node


def test_token_of_blocked_node_is_rejected(operator: Client) -> None:
    node, token = create_node(name="amber")
    operator.post(
        f"/admin/nodes/node/{node.pk}/change/", {"name": "amber", "arm": "swarm", "blocked": "on"}
    )
    assert authenticate(token) is None


def test_name_and_arm_of_a_node_cannot_be_edited(operator: Client) -> None:
    node, _ = create_node(name="amber")
    form = {"name": "bold", "arm": "isolated", "title": "Attic"}
    operator.post(f"/admin/nodes/node/{node.pk}/change/", form)
    node.refresh_from_db()
    assert (node.name, node.arm, node.title) == ("amber", "swarm", "Attic")


def test_node_name_that_is_not_a_slug_is_rejected(operator: Client) -> None:
    page = operator.post("/admin/nodes/node/add/", {"name": "x/y", "arm": "swarm"})
    assert "consisting of letters, numbers, underscores or hyphens" in page.content.decode()
    assert not Node.objects.exists()
