"""Revocation of a token by an operator or the owner ends the node's connection."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Refused, RequestRound, RoundState
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import rotate_token, show_out
from tests.gateway.conftest import Member
from tests.sockets import NodeSocket, node_socket

WITHIN_S = 2
ASK = RequestRound(id="ask")


@sync_to_async
def submit_as_operator(path: str, fields: dict[str, object]) -> None:
    """Submit a form of the admin as an operator."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("olive"))
    assert browser.post(f"/admin/nodes/node/{path}", fields).status_code == 302


@sync_to_async
def submit_as_owner(node: Node, path: str) -> None:
    """Submit a form of the account pages as the node's owner, after reauthentication."""
    owner = User.objects.create_user("otto", password="a long enough one")
    Node.objects.filter(pk=node.pk).update(owner=owner)
    browser = Client()
    browser.force_login(owner)
    browser.post("/account/reauthenticate/", {"password": "a long enough one"})
    assert browser.post(f"/account/{path}").status_code in (200, 302)


async def is_disconnected(socket: NodeSocket) -> bool:
    async with asyncio.timeout(WITHIN_S):
        refused = await socket.hear()
        assert isinstance(refused, Refused)
        return refused.code == ErrorCode.AUTH_INVALID and await socket.close_code() == 4401


async def test_new_token_disconnects_the_old_one(gateway: str, amber: Member) -> None:
    async with node_socket(gateway, amber.token) as socket:
        await submit_as_operator(
            "", {"action": "give_new_token", "_selected_action": [amber.node.pk]}
        )
        assert await is_disconnected(socket)


async def test_blocking_a_node_disconnects_it(gateway: str, amber: Member) -> None:
    fields: dict[str, object] = {"name": "amber", "arm": "swarm", "blocked": "on"}
    async with node_socket(gateway, amber.token) as socket:
        await submit_as_operator(f"{amber.node.pk}/change/", fields)
        assert await is_disconnected(socket)


@pytest.mark.parametrize("path", ["nodes/amber/token/", "nodes/amber/revoke/", "delete/"])
async def test_revocation_by_the_owner_disconnects_the_node(
    gateway: str, amber: Member, path: str
) -> None:
    async with node_socket(gateway, amber.token) as socket:
        await submit_as_owner(amber.node, path)
        assert await is_disconnected(socket)


async def test_change_of_other_fields_does_not_disconnect(
    gateway: str, amber: Member, bold: Member
) -> None:
    async with (
        node_socket(gateway, amber.token) as unaffected,
        node_socket(gateway, bold.token) as revoked,
    ):
        await submit_as_operator(f"{amber.node.pk}/change/", {"name": "amber", "arm": "swarm"})
        await sync_to_async(rotate_token)(bold.node)
        assert await is_disconnected(revoked)  # So the earlier doorbell was received too.
        assert isinstance(await unaffected.ask(ASK), RoundState)


async def test_late_doorbell_does_not_disconnect_the_new_token(
    gateway: str, amber: Member, bold: Member
) -> None:
    new = await sync_to_async(rotate_token)(amber.node)
    async with node_socket(gateway, new) as unaffected, node_socket(gateway, bold.token) as revoked:
        await sync_to_async(show_out)(amber.node)
        await sync_to_async(rotate_token)(bold.node)
        assert await is_disconnected(revoked)
        assert isinstance(await unaffected.ask(ASK), RoundState)
