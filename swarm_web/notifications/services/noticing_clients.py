"""Messages to owners whose nodes run a client that is too old, or will be soon."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from judge.selectors.seasons import running_season
from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.rules import is_outdated
from swarm_web.notifications.services.noticing import BATCH, describe_node, queue_all

# A node that was last seen longer ago is not in use.
_IN_USE = timedelta(days=30)


def notice_minimum(*, now: datetime) -> int:
    """Queue messages to owners of nodes whose client is too old, or will be.

    A client is compared with two versions: the minimum that is required now, and the next minimum
    that the running season has announced. A channel gets at most one message about each version.
    Blocked nodes, and nodes not seen for 30 days, are ignored.

    Queues up to BATCH messages for each version, and returns how many in total. 0 means that none
    is left.
    """
    season = running_season()
    required = (season.minimum_client if season else "") or settings.MINIMUM_CLIENT_VERSION
    coming = season.next_minimum_client if season else ""
    queued = _notify_older(required, is_required_now=True, now=now)
    if coming:
        queued += _notify_older(coming, is_required_now=False, now=now)
    return queued


def _notify_older(version: str, *, is_required_now: bool, now: datetime) -> int:
    in_use = Node.objects.filter(
        last_seen__gt=now - _IN_USE, owner__isnull=False, blocked=False
    ).exclude(client_version="")
    versions = in_use.order_by().values_list("client_version", flat=True).distinct()
    outdated = [each for each in versions if is_outdated(each, minimum=version)]
    older = in_use.filter(client_version__in=outdated)
    key = f"client:{version}"
    with transaction.atomic():
        channels = _unnotified_channels(key, older)
        nodes = _nodes_by_owner(older, channels)
        queue_all(
            Delivery(
                channel=channel,
                type=Delivery.Type.CLIENT_REQUIRED,
                key=key,
                data={
                    "version": version,
                    "now": is_required_now,
                    "url": f"{settings.SITE_URL}/join/",
                    "nodes": nodes[channel.owner_id],
                },
                created_at=now,
            )
            for channel in channels
        )
    return len(channels)


def _unnotified_channels(key: str, older: QuerySet[Node]) -> Sequence[Channel]:
    notified = Delivery.objects.filter(channel=OuterRef("pk"), key=key)
    channels = Channel.objects.subscribed_to(Channel.Event.CLIENT_REQUIRED).filter(
        ~Exists(notified), Exists(older.filter(owner=OuterRef("owner")))
    )
    return list(channels.order_by("pk")[:BATCH])


def _nodes_by_owner(
    older: QuerySet[Node], channels: Sequence[Channel]
) -> Mapping[int, list[dict[str, str]]]:
    nodes: defaultdict[int, list[dict[str, str]]] = defaultdict(list)
    for node in older.filter(owner__in={channel.owner_id for channel in channels}):
        nodes[node.owner_id or 0].append({**describe_node(node), "client": node.client_version})
    return nodes
