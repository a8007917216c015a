"""Views of badges, preview cards and the icon; a request that names their ETag draws nothing.

Anonymous visitors get badges and cards from `edge.page_cache`, which sends other ETags: for them a
badge or card is drawn once in PAGE_CACHE_SECONDS at most, even if their copies are current.
"""

from collections.abc import Callable
from hashlib import blake2b

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.cache import get_conditional_response, patch_cache_control
from django.views.decorators.http import etag, require_safe

from swarm_protocol.version import CLIENT_VERSION
from swarm_web.dashboard.sharing.badges import CACHE_S, Badge, make_node_badge, make_site_badge
from swarm_web.dashboard.sharing.cards import draw_icon, draw_node_card, draw_site_card
from swarm_web.dashboard.sharing.facts import (
    NodeFacts,
    SiteFacts,
    read_node_facts,
    read_site_facts,
)
from swarm_web.nodes.models import Node

ICON_CACHE_S = 86_400


@require_safe
def node_badge(request: HttpRequest, name: str, suffix: str) -> HttpResponse:
    """Return a node's badge: JSON for shields.io if `suffix` is `json`, otherwise SVG."""
    facts = _read_node(name)
    return _answer(request, facts, lambda: _draw_badge(request, make_node_badge(facts), suffix))


@require_safe
def site_badge(request: HttpRequest, suffix: str) -> HttpResponse:
    """Return the site's badge: JSON for shields.io if `suffix` is `json`, otherwise SVG."""
    facts = read_site_facts(now=timezone.now())
    return _answer(request, facts, lambda: _draw_badge(request, make_site_badge(facts), suffix))


@require_safe
def node_card(request: HttpRequest, name: str) -> HttpResponse:
    """Return a node's preview card, the picture for links to its page, as PNG."""
    facts = _read_node(name)
    return _answer(
        request, facts, lambda: _send_png(draw_node_card(facts, site=settings.SITE_NAME))
    )


@require_safe
def site_card(request: HttpRequest) -> HttpResponse:
    """Return the site's preview card, the picture for links to its pages, as PNG."""
    facts = read_site_facts(now=timezone.now())
    return _answer(request, facts, lambda: _send_png(draw_site_card(facts)))


def _hash_icon(_request: HttpRequest) -> str:
    return f'"{blake2b(draw_icon(), digest_size=16).hexdigest()}"'


@require_safe
@etag(_hash_icon)
def favicon(_request: HttpRequest) -> HttpResponse:
    """Return the site's icon as ICO, for pages that link no icon and browsers without SVG icons."""
    response = HttpResponse(draw_icon(), content_type="image/x-icon")
    patch_cache_control(response, public=True, max_age=ICON_CACHE_S)
    return response


def _read_node(name: str) -> NodeFacts:
    return read_node_facts(get_object_or_404(Node, name=name), now=timezone.now())


def _draw_badge(request: HttpRequest, badge: Badge, suffix: str) -> HttpResponse:
    if suffix == "json":
        return JsonResponse(badge.as_json())
    return render(request, "sharing/badge.svg", {"badge": badge}, content_type="image/svg+xml")


def _send_png(card: bytes) -> HttpResponse:
    return HttpResponse(card, content_type="image/png")


def _answer(
    request: HttpRequest, facts: NodeFacts | SiteFacts, draw: Callable[[], HttpResponse]
) -> HttpResponse:
    """Return 304 if the client's copy has the current ETag, else the response that `draw` makes.

    The ETag is a hash of the facts, the path, the site's name and the software's version. The
    response may be cached for CACHE_S seconds.
    """
    content = msgspec.json.encode((CLIENT_VERSION, request.path, settings.SITE_NAME, facts))
    etag = f'"{blake2b(content, digest_size=16).hexdigest()}"'
    response = get_conditional_response(request, etag=etag)
    if response is None:
        response = draw()
    response["ETag"] = etag
    patch_cache_control(response, public=True, max_age=CACHE_S)
    return response
