"""Nodes and their tokens: creation, authentication, revocation.

A token is 256 random bits, shown once; the database stores its SHA-256, which needs no salt or
stretching because the token cannot be guessed.
"""

import base64
import hashlib
import secrets
from random import Random

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from swarm_web.core import bus
from swarm_web.nodes.models import Node
from swarm_web.nodes.names import draw_name

_TOKEN_PREFIX = "swarm_"


def create_node(
    *,
    name: str | None = None,
    arm: str = Node.Arm.SWARM,
    owner: User | None = None,
    title: str = "",
) -> tuple[Node, str]:
    """Create a node and return it with its token, which cannot be read again later.

    The title must have been validated. Raises ValidationError if the given name is not a slug or is
    too long, and IntegrityError if it is taken.
    """
    if name is not None:
        Node._meta.get_field("name").clean(name, None)
    random = Random(secrets.randbits(64))
    token = make_token(secrets.token_bytes(32))
    while True:
        try:
            with transaction.atomic():
                chosen = draw_name(random) if name is None else name
                node = Node.objects.create(
                    name=chosen, arm=arm, owner=owner, title=title, token_hash=hash_token(token)
                )
        except IntegrityError:
            if name is not None:
                raise
        else:
            return node, token


def rotate_token(node: Node) -> str:
    """Give the node a new random token and return the token (`give_token`)."""
    token = make_token(secrets.token_bytes(32))
    give_token(node, token)
    return token


def give_token(node: Node, token: str) -> None:
    """Replace the node's token by `token`, and end the connection made with the old token."""
    node.token_hash = hash_token(token)
    node.save(update_fields=["token_hash"])
    end_connection(node)


def make_token(secret: bytes) -> str:
    """Return the token that encodes `secret`, 32 bytes."""
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(secret).rstrip(b"=").decode()


def revoke_token(node: Node) -> None:
    """Make the node's token invalid and end its connection.

    `rotate_token` can give the node a new token later.
    """
    Node.objects.filter(pk=node.pk).update(token_hash=Node.revoked_hash())
    end_connection(node)


def end_connection(node: Node) -> None:
    """Ask the web processes to end the node's connection if the node is no longer admitted.

    A node is no longer admitted if it is blocked, or if its token was replaced or revoked after it
    connected.
    """
    bus.ring(bus.RECHECK_NODE, str(node.pk))


def hash_token(token: str) -> str:
    """Return a token's SHA-256 in hex. The database stores this hash instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def authenticate(token: str) -> Node | None:
    """Return the node of a token; None if the token is unknown or the node is blocked."""
    return Node.objects.filter(token_hash=hash_token(token), blocked=False).first()
