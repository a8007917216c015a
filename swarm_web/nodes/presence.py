"""Records which nodes connect, stay and leave; one SQL statement serves many nodes."""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db import connection

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Hello
from swarm_web.nodes.models import Node, NodeKey
from swarm_web.nodes.services import hash_token

logger = logging.getLogger(__name__)

# A node that lost its state folder makes a new key. Keys are never deleted, so the number of new
# ones in a day is bounded.
MAX_NEW_KEYS = 20
DAY = timedelta(days=1)
NEW_KEY_WAIT_S = 3600.0

_STORE_HELLOS = """
UPDATE nodes_node AS node SET
    model = new.model, parameters = new.parameters, tokenizer = new.tokenizer, arm = new.arm,
    client_version = new.client, hardware = new.hardware::jsonb, last_seen = new.now,
    left_at = NULL, said_goodbye = FALSE
FROM unnest(
    %(id)s::bigint[], %(model)s::text[], %(parameters)s::bigint[], %(tokenizer)s::text[],
    %(arm)s::text[], %(client)s::text[], %(hardware)s::text[], %(now)s::timestamptz[]
) AS new (id, model, parameters, tokenizer, arm, client, hardware, now)
WHERE node.id = new.id
"""

_STORE_DEPARTURES = """
UPDATE nodes_node AS node SET left_at = new.now, said_goodbye = new.goodbye
FROM unnest(%s::bigint[], %s::boolean[], %s::timestamptz[]) AS new (id, goodbye, now)
WHERE node.id = new.id
"""


@dataclass(frozen=True)
class HelloRecord:
    """A hello to be stored; `node.arm` is the assigned arm, `hello.arm` the requested one."""

    node: Node
    hello: Hello
    now: datetime


@dataclass(frozen=True)
class Departure:
    """A closed socket of a node.

    `goodbye` is the new value of `Node.said_goodbye`.
    """

    node_id: int
    goodbye: bool
    now: datetime


def authenticate_all(tokens: Sequence[str]) -> list[Node | None]:
    """Return the node of each token, even if the node is blocked; None for an unknown token."""
    hashes = [hash_token(token) for token in tokens]
    found = {node.token_hash: node for node in Node.objects.filter(token_hash__in=set(hashes))}
    return [found.get(each) for each in hashes]


def store_hellos(hellos: Sequence[HelloRecord]) -> None:
    """Store what the nodes' hellos report, and mark the nodes as connected.

    If a node sent several hellos, the last one is stored. `said_goodbye` is set to False in the
    database and in the `node` of each record.
    """
    rows = {each.node.pk: each for each in hellos}.values()
    for each in hellos:
        each.node.said_goodbye = False
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE_HELLOS,
            {
                "id": [each.node.pk for each in rows],
                "model": [each.hello.model for each in rows],
                "parameters": [each.hello.parameters for each in rows],
                "tokenizer": [each.hello.tokenizer for each in rows],
                "arm": [each.node.arm for each in rows],
                "client": [each.hello.client for each in rows],
                "hardware": [_describe_hardware(each.hello) for each in rows],
                "now": [each.now for each in rows],
            },
        )


def _describe_hardware(hello: Hello) -> str:
    return json.dumps(msgspec.to_builtins(hello.hardware) if hello.hardware else {})


def bind_keys(hellos: Sequence[HelloRecord]) -> list[NodeKey | RefusedError | None]:
    """Store the signing keys that are new, and return one result for each hello.

    The result is the hello's key, or None if the hello has no key. A node can add up to
    MAX_NEW_KEYS keys in a day. A new key over this limit is not stored, and its result is a
    RefusedError.
    """
    keys = _read_keys(hellos)
    recent = Counter(
        node_id for (node_id, _), key in keys.items() if key.first_seen > hellos[0].now - DAY
    )
    new: dict[tuple[int, str], NodeKey] = {}
    for each in hellos:
        pair = each.node.pk, each.hello.key or ""
        if each.hello.key is None or pair in keys or pair in new:
            continue
        if recent[each.node.pk] < MAX_NEW_KEYS:
            new[pair] = NodeKey(node=each.node, public=each.hello.key, first_seen=each.now)
            recent[each.node.pk] += 1
    if new:
        NodeKey.objects.bulk_create(new.values(), ignore_conflicts=True)
        keys = _read_keys(hellos)
        for key in new.values():
            if sum(node_id == key.node_id for node_id, _ in keys) > 1:
                logger.warning("%s signs with a new key, %s", key.node.name, key.public)
    return [
        None if each.hello.key is None else keys.get((each.node.pk, each.hello.key), _refuse_key())
        for each in hellos
    ]


def _refuse_key() -> RefusedError:
    return RefusedError(
        ErrorCode.RATE_LIMITED,
        f"this node came with {MAX_NEW_KEYS} new signing keys in a day",
        fix="Keep the node's state folder, which has its key, or wait.",
        retry_after=NEW_KEY_WAIT_S,
    )


def _read_keys(hellos: Sequence[HelloRecord]) -> dict[tuple[int, str], NodeKey]:
    signing = {each.node.pk for each in hellos if each.hello.key is not None}
    if not signing:
        return {}
    return {(key.node_id, key.public): key for key in NodeKey.objects.filter(node__in=signing)}


def touch(nodes: Sequence[Node], *, now: datetime) -> dict[int, int | None]:
    """Set `last_seen` to `now` for the nodes that are still admitted (`find_admitted`).

    Returns a dict with these nodes: node id to the owner's id (or None).
    """
    owners = find_admitted(nodes)
    Node.objects.filter(pk__in=owners).update(last_seen=now)
    return owners


def find_admitted(nodes: Sequence[Node]) -> dict[int, int | None]:
    """Return a dict with the admitted nodes among `nodes`: node id to the owner's id (or None).

    A node is admitted if the database says that it is not blocked, and its `token_hash` has not
    changed since `nodes` were read.
    """
    tokens = {node.pk: node.token_hash for node in nodes}
    rows = Node.objects.filter(pk__in=tokens, blocked=False)
    return {
        pk: owner_id
        for pk, owner_id, token_hash in rows.values_list("pk", "owner_id", "token_hash")
        if tokens[pk] == token_hash
    }


def record_departures(departures: Sequence[Departure]) -> list[None]:
    """Record that the nodes' sockets were closed; return a None for each, as `Batcher` requires."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE_DEPARTURES,
            [
                [each.node_id for each in departures],
                [each.goodbye for each in departures],
                [each.now for each in departures],
            ],
        )
    return [None] * len(departures)
