"""The public profile of an owner who turned it on."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from swarm_web.accounts.selectors import find_public_owner, read_own_nodes, read_seasons


@require_safe
def owner(request: HttpRequest, username: str) -> HttpResponse:
    """Show an owner's nodes, with seasons and contributions; 404 without a public profile."""
    found = find_public_owner(username)
    if found is None:
        raise Http404
    nodes = read_own_nodes(found, now=timezone.now())
    seasons = read_seasons([own.node for own in nodes])
    published = sum(part.contribution.published for part in seasons if part.contribution)
    used = sum(part.contribution.used_by_others for part in seasons if part.contribution)
    context = {"owner": found, "nodes": nodes, "seasons": seasons, "published": published}
    return render(request, "owner.html", context | {"used": used})
