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
    """Create a node and return it with its token, which is shown only now.

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
    """Give the node a new token and return it; end the old token and its connection."""
    token = make_token(secrets.token_bytes(32))
    give_token(node, token)
    return token


def give_token(node: Node, token: str) -> None:
    """Give the node this token; end the old token and its connection."""
    node.token_hash = hash_token(token)
    node.save(update_fields=["token_hash"])
    end_connection(node)


def make_token(secret: bytes) -> str:
    """Return the token that encodes these 32 secret bytes."""
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(secret).rstrip(b"=").decode()


def revoke_token(node: Node) -> None:
    """End the node's token and its connection. `rotate_token` can give it a new token later."""
    Node.objects.filter(pk=node.pk).update(token_hash=Node.revoked_hash())
    end_connection(node)


def end_connection(node: Node) -> None:
    """Have web processes end the node's connection if the node is no longer admitted.

    That is so if it is blocked, or its token was replaced or revoked since it connected.
    """
    bus.ring(bus.RECHECK_NODE, str(node.pk))


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token in hex, which the database stores instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def authenticate(token: str) -> Node | None:
    """Return the node of a token; None if the token is unknown or the node is blocked."""
    return Node.objects.filter(token_hash=hash_token(token), blocked=False).first()
