"""Texts of e-mails and ntfy messages, from the data of deliveries. Not translated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from swarm_web.notifications.models import Delivery

Data = Mapping[str, Any]

# Maximum number of nodes listed in a message.
_MAX_NAMES = 20


@dataclass(frozen=True)
class MessageText:
    """An e-mail or ntfy message; `url` is a page with details, `is_urgent` raises the priority."""

    title: str
    text: str
    url: str
    is_urgent: bool = False


def compose_text(delivery: Delivery) -> MessageText:
    """Return the title, text and link of a delivery's message."""
    return _COMPOSERS[Delivery.Type(delivery.type)](delivery.data)


def _silent(data: Data) -> MessageText:
    return MessageText(
        title=f"{data['node']} is offline",
        text=f"{settings.SITE_NAME} has not heard from the node {data['node']} since "
        f"{data['last_seen']}. Check that it is running and that its network is up: "
        "run `swarm-node status` on its machine.",
        url=data["url"],
        is_urgent=True,
    )


def _back(data: Data) -> MessageText:
    return MessageText(
        title=f"{data['node']} is back online",
        text=f"The node {data['node']} is connected again. It was offline from "
        f"{data['silent_from']}.",
        url=data["url"],
    )


def _scored(data: Data) -> MessageText:
    lines = [_describe_score(node) for node in data["nodes"][:_MAX_NAMES]]
    if more := len(data["nodes"]) - _MAX_NAMES:
        lines += [f"and {more} more"] if more > 0 else []
    return MessageText(
        title=f"Round {data['round']} of {data['season']} was scored",
        text="\n".join(lines),
        url=data["url"],
    )


def _describe_score(node: Data) -> str:
    low, high = (100 * bound for bound in node["interval"])
    return (
        f"{node['node']}: {100 * node['score']:.1f} % "
        f"(95 % interval {low:.1f} to {high:.1f}, {node['n']} questions)"
    )


def _required(data: Data) -> MessageText:
    names = [f"{node['node']} (runs {node['client']})" for node in data["nodes"][:_MAX_NAMES]]
    if len(data["nodes"]) > _MAX_NAMES:
        names.append(f"{len(data['nodes']) - _MAX_NAMES} more")
    verb = "is required" if data["now"] else "will be required soon"
    return MessageText(
        title=f"Client {data['version']} or newer {verb}",
        text=f"{settings.SITE_NAME} {'refuses' if data['now'] else 'will refuse'} older clients. "
        f"Update {', '.join(names)}. The linked page explains how.",
        url=data["url"],
        is_urgent=data["now"],
    )


def _test(data: Data) -> MessageText:
    return MessageText(
        title=f"Test message from {settings.SITE_NAME}",
        text="You requested this message on your notifications page. Delivery works.",
        url=data["url"],
    )


_COMPOSERS: Mapping[Delivery.Type, Callable[[Data], MessageText]] = {
    Delivery.Type.NODE_SILENT: _silent,
    Delivery.Type.NODE_BACK: _back,
    Delivery.Type.ROUND_SCORED: _scored,
    Delivery.Type.CLIENT_REQUIRED: _required,
    Delivery.Type.TEST: _test,
}
