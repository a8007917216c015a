"""Nodes of the demo data: their rows, owners, arms and contributions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from django.contrib.auth.models import User

from judge.models import Enrolment, Season
from judge.services.oversight import quarantine_node
from swarm_protocol.version import CLIENT_VERSION
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import hash_token
from swarm_web.relay.models import Contribution
from swarm_web.seeding.population import KINDS, Population

_OWNERS = ("ada", "blaise", "chandra", "dorothy", "emmy", "fatima", "grace", "hedy")
_OWNED_SHARE = 0.5
_CONNECTED_SHARE = 0.7
# Optimizer steps of a node between two rounds.
_STEPS_PER_ROUND = 12
BATCH = 2_000


@dataclass(frozen=True)
class DemoClock:
    """The times of the demo data.

    The data ends at `now`; some nodes count as connected until `present_until`.
    """

    now: datetime
    present_until: datetime


def create_nodes(population: Population, *, clock: DemoClock, seed: int) -> list[Node]:
    """Create the nodes and their owners, and return the nodes. One node is quarantined."""
    random = Random(seed)
    owners = [_owner(name) for name in _OWNERS]
    described = [
        _describe(population, index, owners, clock=clock, random=random)
        for index in range(len(population))
    ]
    nodes = Node.objects.bulk_create(described, batch_size=BATCH)
    suspect = nodes[len(KINDS) + (len(nodes) - len(KINDS)) // 3]
    quarantine_node(
        suspect, reason="Its answers repeat another node's mistakes.", actor=None, now=clock.now
    )
    return nodes


def _owner(name: str) -> User:
    owner, _ = User.objects.get_or_create(username=f"demo-{name}")
    if not owner.password:
        owner.set_unusable_password()
        owner.save(update_fields=["password"])
    return owner


def _describe(
    population: Population, index: int, owners: list[User], *, clock: DemoClock, random: Random
) -> Node:
    kind = population.kinds[index]
    connected = random.random() < _CONNECTED_SHARE
    gone_at = clock.now - timedelta(hours=random.uniform(0.1, 60))
    return Node(
        name=population.names[index],
        owner=random.choice(owners) if random.random() < _OWNED_SHARE else None,
        token_hash=hash_token(f"nobody has this token: {random.getrandbits(128):x}"),
        model=kind.name,
        parameters=kind.parameters,
        tokenizer=kind.name,
        arm=population.arms[index],
        client_version=CLIENT_VERSION,
        last_seen=clock.present_until if connected else gone_at,
        left_at=None if connected else gone_at,
        said_goodbye=not connected,
    )


def enrol_all(season: Season, nodes: Iterable[Node]) -> None:
    """Enrol nodes in a season, with their arms."""
    choice = Season.Assignment.CHOICE
    Enrolment.objects.bulk_create(
        (
            Enrolment(
                season=season,
                node=node,
                arm=node.arm,
                assignment=choice if node.arm == Node.Arm.BASE else season.assignment,
            )
            for node in nodes
        ),
        batch_size=BATCH,
    )


def write_contributions(
    season: Season,
    population: Population,
    nodes: Sequence[Node],
    rounds: Mapping[int, int],
    *,
    random: Random,
) -> None:
    """Write the contributions of the season's participants, except untrained nodes (arm `base`).

    `rounds` maps each participant's index in the population to the number of its rounds.
    """
    Contribution.objects.bulk_create(
        (
            _contribution(season, population, index, nodes[index], count, random=random)
            for index, count in rounds.items()
            if nodes[index].arm != Node.Arm.BASE
        ),
        batch_size=BATCH,
    )


def _contribution(
    season: Season, population: Population, index: int, node: Node, rounds: int, *, random: Random
) -> Contribution:
    steps = rounds * _STEPS_PER_ROUND + random.randrange(_STEPS_PER_ROUND)
    external = season.external if node.arm == Node.Arm.SWARM else 0
    local = season.local if external else season.local + season.external
    dropped = random.randrange(1 + steps // 10) if external else 0
    low, high = population.floors[index].mean(), population.ceilings[index].mean()
    return Contribution(
        node=node,
        season=season,
        published=steps * local if external else 0,
        rejected=random.randrange(3),
        delivered=steps * external,
        step=steps,
        training_reward=float(random.uniform(low, high)),
        informative_share=random.uniform(0.35, 0.7),
        local_used=steps * local,
        external_used=steps * external - dropped,
        external_dropped={"not_informative": dropped} if dropped else {},
        used_by_others=random.randrange(1 + steps * external),
    )
