"""Finds events for owners, and queues one delivery for each event and channel.

Each `notice_` function handles one batch, and returns how many nodes it processed: 0 when no nodes
are left. Running it again or concurrently queues no message twice, because an event's key is unique
in a channel.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef

from swarm_web.core import heartbeat
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel, Delivery, NodeNews
from swarm_web.notifications.rules import Watch, continue_watch

BATCH = 200
# A silence that began longer ago is not reported, for example after the site was down.
_NEWS_FOR = timedelta(days=1)
_WATCH_KEY = "notifications:watch"


Channels = Mapping[int, Sequence[Channel]]


def notice_silences(*, before: datetime, now: datetime) -> int:
    """Queue messages about nodes that became silent: those last seen in the day up to `before`.

    Some nodes are left out:

    - nodes whose owner has no channel for this event
    - nodes that ended the connection themselves (goodbye)
    - blocked nodes, and nodes whose token was revoked
    - nodes whose silence an earlier call handled

    A node counts as silent from the time `last_seen + (now - before)`. A channel created after this
    time gets no message about the node.

    Returns how many nodes this call handled, at most BATCH. 0 means that none is left.
    """
    with transaction.atomic():
        nodes = list(_new_silences(before=before, now=now)[:BATCH])
        channels = channels_of(nodes, event=Channel.Event.NODE_SILENT)
        queue_all(
            _compose_silence(node, channel, now=now)
            for node in nodes
            for channel in channels[node.owner_id or 0]
            # A channel created later gets no message: its owner knows of the silence by then.
            if node.last_seen
            and not node.is_revoked
            and channel.created_at <= node.last_seen + (now - before)
        )
        NodeNews.objects.bulk_create(
            [NodeNews(node=node, silent_from=node.last_seen) for node in nodes if node.last_seen],
            update_conflicts=True,
            update_fields=["silent_from"],
            unique_fields=["node"],
        )
    return len(nodes)


def _new_silences(*, before: datetime, now: datetime) -> Any:
    reported = NodeNews.objects.filter(node=OuterRef("pk"), silent_from=OuterRef("last_seen"))
    channels = Channel.objects.subscribed_to(Channel.Event.NODE_SILENT).filter(
        owner=OuterRef("owner")
    )
    return Node.objects.filter(
        ~Exists(reported),
        Exists(channels),
        last_seen__lt=before,
        last_seen__gt=before - _NEWS_FOR,
        # Not stopped by its owner or its hours.
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
    """Queue messages about nodes that were silent and are back.

    A channel gets a message about a node if it has a message about the node's silence that is not
    deleted yet (`prune_deliveries`), and if it still reports this event. Returns how many nodes
    this call handled, at most BATCH. 0 means that none is left.
    """
    with transaction.atomic():
        news = list(
            NodeNews.objects.filter(node__last_seen__gt=F("silent_from"))
            .select_related("node")
            .select_for_update(skip_locked=True, of=("self",))[:BATCH]
        )
        channels = channels_of([item.node for item in news], event=Channel.Event.NODE_SILENT)
        reported = _reported_silences(news, channels)
        queue_all(
            Delivery(
                channel=channel,
                type=Delivery.Type.NODE_BACK,
                key=f"back:{item.node.pk}:{item.silent_from.timestamp()}",
                data={**describe_node(item.node), "silent_from": item.silent_from.isoformat()},
                created_at=now,
            )
            for item in news
            for channel in channels[item.node.owner_id or 0]
            if (channel.pk, _silence_key(item.node.pk, item.silent_from)) in reported
        )
        NodeNews.objects.filter(pk__in=[item.pk for item in news]).delete()
    return len(news)


def _reported_silences(news: Sequence[NodeNews], channels: Channels) -> set[tuple[int, str]]:
    rows = Delivery.objects.filter(
        channel__in=[channel for some in channels.values() for channel in some],
        key__in=[_silence_key(item.node.pk, item.silent_from) for item in news],
    )
    return set(rows.values_list("channel", "key"))


def _silence_key(node_id: int, last_seen: datetime) -> str:
    return f"silent:{node_id}:{last_seen.timestamp()}"


# ---- shared by all events


def channels_of(nodes: Iterable[Node], *, event: Channel.Event) -> defaultdict[int, list[Channel]]:
    """Return the enabled channels that report `event` to owners of these nodes, by owner id."""
    channels: defaultdict[int, list[Channel]] = defaultdict(list)
    owners = {node.owner_id for node in nodes}
    for channel in Channel.objects.subscribed_to(event).filter(owner__in=owners):
        channels[channel.owner_id].append(channel)
    return channels


def queue_all(deliveries: Iterable[Delivery]) -> None:
    """Queue deliveries, except those whose event was queued for the channel before."""
    Delivery.objects.bulk_create(deliveries, ignore_conflicts=True, batch_size=BATCH)


def describe_node(node: Node) -> dict[str, str]:
    """Return a node's data for a message: its name (`node`) and the address of its page (`url`)."""
    return {"node": node.name, "url": settings.SITE_URL + node.get_absolute_url()}


def update_watch(*, now: datetime) -> Watch:
    """Update the watch (`rules.Watch`) to `now`, store it in Redis, and return it.

    The watch starts again if Redis has lost it, or if another version of the site stored it in
    another format. Silent nodes are then reported later than usual.
    """
    watch = continue_watch(_read_watch(), now=now, web_silence=heartbeat.web_silence())
    sync_redis().set(_WATCH_KEY, msgspec.json.encode(watch))
    return watch


def _read_watch() -> Watch | None:
    stored = sync_redis().get(_WATCH_KEY)
    try:
        return msgspec.json.decode(stored, type=Watch) if stored else None
    except msgspec.DecodeError:
        return None
