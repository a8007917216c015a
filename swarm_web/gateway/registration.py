"""The database work of hellos, for many nodes at once."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judge.models import Season
from judge.services.receipts import Signer
from judge.services.seasons import enrol_all
from swarm_protocol.errors import RefusedError
from swarm_web.nodes.models import NodeKey
from swarm_web.nodes.presence import HelloRecord, bind_keys, store_hellos


@dataclass(frozen=True)
class NodeHello(HelloRecord):
    """A node's hello. `season` is the running season, or None if no season runs."""

    season: Season | None


def register_nodes(hellos: Sequence[NodeHello]) -> list[Signer | Exception | None]:
    """Enrol nodes, set `model` and `arm` of their `Node`, and store the contents of the hellos.

    Returns one item for each hello, in the same order. If the hello has no key, the item is None.
    If its key is refused (`presence.bind_keys`), the item is the RefusedError; the node is
    enrolled, but the hello is not stored. Otherwise the item is the node's Signer.
    """
    for each in hellos:
        each.node.model = each.hello.model
    _assign_arms(hellos)
    keys = bind_keys(hellos)
    store_hellos(
        [each for each, key in zip(hellos, keys, strict=True) if not isinstance(key, RefusedError)]
    )
    return [
        Signer(node=each.node.name, key_id=key.pk, public=key.public)
        if isinstance(key, NodeKey)
        else key
        for each, key in zip(hellos, keys, strict=True)
    ]


def _assign_arms(hellos: Sequence[NodeHello]) -> None:
    """Enrol each node in its hello's season, and set `Node.arm` to the arm assigned there.

    If the hello has no season, the node is not enrolled and gets the arm that it asks for.
    """
    by_season: defaultdict[Season, list[NodeHello]] = defaultdict(list)
    for each in hellos:
        each.node.arm = each.hello.arm
        if each.season is not None:
            by_season[each.season].append(each)
    for season, some in by_season.items():
        arms = enrol_all(season, [(each.node, each.hello.arm) for each in some])
        for each, arm in zip(some, arms, strict=True):
            each.node.arm = arm
