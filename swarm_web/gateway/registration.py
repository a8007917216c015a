"""The database work of hellos, for many nodes at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from judge.models import Season
from judge.services.receipts import Signer
from judge.services.seasons import enrol_all
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, Hello
from swarm_web.nodes.models import Node, NodeKey
from swarm_web.nodes.presence import HelloRecord, bind_keys, store_hellos

_ARMS: dict[str, Arm] = {"swarm": "swarm", "isolated": "isolated", "base": "base"}


@dataclass(frozen=True)
class NodeHello:
    """A hello that a node sent at `now`, and the running season, if any."""

    node: Node
    hello: Hello
    season: Season | None
    now: datetime


@dataclass(frozen=True)
class Registration:
    """The node's arm, and its signing key if it has one."""

    arm: Arm
    signer: Signer | None


def register_nodes(hellos: Sequence[NodeHello]) -> list[Registration | Exception]:
    """Enrol nodes and store the contents of their hellos.

    Returns a registration for each, or the refusal of its signing key (`presence.bind_keys`).
    """
    for each in hellos:
        each.node.model = each.hello.model
    arms = _find_arms(hellos)
    introductions = [
        HelloRecord(each.node, each.hello, arm, each.now)
        for each, arm in zip(hellos, arms, strict=True)
    ]
    keys = bind_keys(introductions)
    store_hellos(
        [
            each
            for each, key in zip(introductions, keys, strict=True)
            if not isinstance(key, RefusedError)
        ]
    )
    return [
        key if isinstance(key, RefusedError) else Registration(arm, _signer(each.node, key))
        for each, arm, key in zip(hellos, arms, keys, strict=True)
    ]


def _signer(node: Node, key: NodeKey | None) -> Signer | None:
    return Signer(node=node.name, key_id=key.pk, public=key.public) if key else None


def _find_arms(hellos: Sequence[NodeHello]) -> list[Arm]:
    """Return each node's arm: the one that its owner wants if no season is running."""
    arms: dict[tuple[int, int], str] = {}
    for season in {each.season.pk: each.season for each in hellos if each.season}.values():
        preferences = [
            (each.node, each.hello.arm)
            for each in hellos
            if each.season is not None and each.season.pk == season.pk
        ]
        for (node, _), arm in zip(preferences, enrol_all(season, preferences), strict=True):
            arms[season.pk, node.pk] = arm
    return [
        _ARMS[arms[each.season.pk, each.node.pk]] if each.season else each.hello.arm
        for each in hellos
    ]
