"""What happens to nodes: creation, authentication, presence.

A token is 256 random bits, shown once; the database keeps its SHA-256, which needs no salt or
stretching because the token cannot be guessed.
"""

import base64
import hashlib
import logging
import secrets
from datetime import datetime
from random import Random

import msgspec
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from swarm_protocol.messages import Hello
from swarm_web import bus
from swarm_web.nodes.models import Node, NodeKey
from swarm_web.nodes.names import draw_name

logger = logging.getLogger(__name__)

_TOKEN_PREFIX = "swarm_"


def create_node(
    *,
    name: str | None = None,
    arm: str = Node.Arm.SWARM,
    owner: User | None = None,
    title: str = "",
) -> tuple[Node, str]:
    """Create a node and return it with its token, which is shown only now.

    The title must have been checked. Raises ValidationError when the given name is no slug, and
    IntegrityError when it is taken.
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
    """Give the node a new token, which ends the old one and its connection, and return it."""
    token = make_token(secrets.token_bytes(32))
    give_token(node, token)
    return token


def give_token(node: Node, token: str) -> None:
    """Give the node this token, which ends the one that it had and its connection."""
    node.token_hash = hash_token(token)
    node.save(update_fields=["token_hash"])
    show_out(node)


def make_token(secret: bytes) -> str:
    """Return the token that these 32 secret bytes stand for."""
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(secret).rstrip(b"=").decode()


def revoke_token(node: Node) -> None:
    """End the node's token and its connection; `rotate_token` gives it a token again."""
    Node.objects.filter(pk=node.pk).update(token_hash=Node.revoked_hash())
    show_out(node)


def show_out(node: Node) -> None:
    """End the node's connection if its token is not valid any more, or the node is blocked."""
    bus.ring(bus.node_topic(node.pk), bus.LOOK_AGAIN)


def hash_token(token: str) -> str:
    """Return what the database keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def authenticate(token: str) -> Node | None:
    """Return the node that owns the token, unless it is blocked."""
    return Node.objects.filter(token_hash=hash_token(token), blocked=False).first()


def introduce(node: Node, hello: Hello, *, now: datetime) -> None:
    """Store what a node says of itself at the start of a connection."""
    node.model = hello.model
    node.parameters = hello.parameters
    node.tokenizer = hello.tokenizer
    node.arm = hello.arm
    node.client_version = hello.client
    node.hardware = msgspec.to_builtins(hello.hardware) if hello.hardware else {}
    node.last_seen = now
    node.left_at = None
    node.said_goodbye = False
    node.save(
        update_fields=[
            "model",
            "parameters",
            "tokenizer",
            "arm",
            "client_version",
            "hardware",
            "last_seen",
            "left_at",
            "said_goodbye",
        ]
    )


def touch(node: Node, *, now: datetime) -> bool:
    """Note that the node's socket is open, and tell whether it may stay open."""
    return bool(_admitted(node).update(last_seen=now))


def may_stay(node: Node) -> bool:
    """Tell whether the token that the node came with is still valid, and the node not blocked."""
    return _admitted(node).exists()


def _admitted(node: Node) -> QuerySet[Node]:
    return Node.objects.filter(pk=node.pk, token_hash=node.token_hash, blocked=False)


def leave(node_id: int, *, goodbye: bool, now: datetime) -> None:
    """Note that the node's socket was closed, and whether the client did so on purpose."""
    Node.objects.filter(pk=node_id).update(left_at=now, said_goodbye=goodbye)


def bind_key(node: Node, public: str, *, now: datetime) -> NodeKey:
    """Return the key that a node signs with, noted for good when it comes for the first time."""
    key, new = NodeKey.objects.get_or_create(node=node, public=public, defaults={"first_seen": now})
    if new and node.keys.count() > 1:
        logger.warning("%s signs with a new key, %s", node.name, public)
    return key
