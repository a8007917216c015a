"""Finding what owners want to be told: each event is put into the outbox once for each channel.

Every function handles one batch and returns how many events it looked at; 0 means that there is
nothing left. Each may run twice or at once: an event's key is unique in a channel.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef

from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel, Delivery, NodeNews

BATCH = 200
# A silence, or a round, that is older is no news: the site was down, say.
_NEWS_FOR = timedelta(days=1)

Channels = Mapping[int, Sequence[Channel]]


def notice_silences(*, before: datetime, now: datetime) -> int:
    """Put into the outbox which nodes went silent: those that were last seen before a moment."""
    with transaction.atomic():
        nodes = list(_untold_silences(before=before, now=now)[:BATCH])
        channels = channels_of(nodes, event=Channel.Event.NODE_SILENT)
        post_all(
            _compose_silence(node, channel, now=now)
            for node in nodes
            for channel in channels[node.owner_id or 0]
            # Whoever asks to be told during a silence knows of it.
            if node.last_seen and channel.created_at <= node.last_seen + (now - before)
        )
        NodeNews.objects.bulk_create(
            [NodeNews(node=node, silent_from=node.last_seen) for node in nodes if node.last_seen],
            update_conflicts=True,
            update_fields=["silent_from"],
            unique_fields=["node"],
        )
    return len(nodes)


def _untold_silences(*, before: datetime, now: datetime) -> Any:
    told = NodeNews.objects.filter(node=OuterRef("pk"), silent_from=OuterRef("last_seen"))
    wanting = Channel.objects.wanting(Channel.Event.NODE_SILENT).filter(owner=OuterRef("owner"))
    return Node.objects.filter(
        ~Exists(told),
        Exists(wanting),
        last_seen__lt=before,
        last_seen__gt=before - _NEWS_FOR,
        # Its owner stopped it, or its limits of hours did.
        said_goodbye=False,
        blocked=False,
    ).order_by("last_seen")


def _compose_silence(node: Node, channel: Channel, *, now: datetime) -> Delivery:
    assert node.last_seen is not None
    return Delivery(
        channel=channel,
        type=Delivery.Type.NODE_SILENT,
        key=_silence_key(node.pk, node.last_seen),
        data={**describe_node(node), "last_seen": node.last_seen.isoformat()},
        created_at=now,
    )


def notice_returns(*, now: datetime) -> int:
    """Put into the outbox which nodes are back, for the channels that told of their silence."""
    with transaction.atomic():
        news = list(
            NodeNews.objects.filter(node__last_seen__gt=F("silent_from"))
            .select_related("node")
            .select_for_update(skip_locked=True, of=("self",))[:BATCH]
        )
        channels = channels_of([item.node for item in news], event=Channel.Event.NODE_SILENT)
        told = _told_silences(news, channels)
        post_all(
            Delivery(
                channel=channel,
                type=Delivery.Type.NODE_BACK,
                key=f"back:{item.node.pk}:{item.silent_from.timestamp()}",
                data={**describe_node(item.node), "silent_from": item.silent_from.isoformat()},
                created_at=now,
            )
            for item in news
            for channel in channels[item.node.owner_id or 0]
            if (channel.pk, _silence_key(item.node.pk, item.silent_from)) in told
        )
        NodeNews.objects.filter(pk__in=[item.pk for item in news]).delete()
    return len(news)


def _told_silences(news: Sequence[NodeNews], channels: Channels) -> set[tuple[int, str]]:
    rows = Delivery.objects.filter(
        channel__in=[channel for some in channels.values() for channel in some],
        key__in=[_silence_key(item.node.pk, item.silent_from) for item in news],
    )
    return set(rows.values_list("channel", "key"))


def _silence_key(node_id: int, last_seen: datetime) -> str:
    return f"silent:{node_id}:{last_seen.timestamp()}"


# ---- what all news are made with


def channels_of(nodes: Iterable[Node], *, event: Channel.Event) -> defaultdict[int, list[Channel]]:
    """Return the channels that want an event, by the owners of these nodes."""
    channels: defaultdict[int, list[Channel]] = defaultdict(list)
    owners = {node.owner_id for node in nodes}
    for channel in Channel.objects.wanting(event).filter(owner__in=owners):
        channels[channel.owner_id].append(channel)
    return channels


def post_all(deliveries: Iterable[Delivery]) -> None:
    """Put messages into the outbox, each unless its event is there for its channel already."""
    Delivery.objects.bulk_create(deliveries, ignore_conflicts=True, batch_size=BATCH)


def describe_node(node: Node) -> dict[str, str]:
    """Return what each message tells of a node."""
    return {"node": node.name, "url": settings.SITE_URL + node.get_absolute_url()}
