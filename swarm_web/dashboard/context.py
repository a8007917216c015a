"""Context of every template: the site's name and address, pill, maintenance, newest chain link.

The pill, at the top of each page, shows the current round and the number of connected nodes.
"""

from dataclasses import replace

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from swarm_web.dashboard.reports.home import Pill, latest_chain_link, read_pill
from swarm_web.edge.brief_cache import keep_briefly
from swarm_web.maintenance.models import Maintenance
from swarm_web.maintenance.selectors import current_maintenance


def describe_site(_request: HttpRequest) -> dict[str, object]:
    """Return the context of every template.

    Values that need queries are lazy, so a page reads only what it shows.
    """
    return {
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "pill": SimpleLazyObject(_read_pill),
        "maintenance": SimpleLazyObject(_read_maintenance),
        "chain_link": SimpleLazyObject(lambda: keep_briefly("chain", latest_chain_link)),
    }


def _read_pill() -> Pill:
    """Return the pill with `now` set to the current time; the rest may come from a cache."""
    now = timezone.now()
    return replace(keep_briefly("pill", lambda: read_pill(now=now)), now=now)


def _read_maintenance() -> Maintenance | None:
    now = timezone.now()
    return keep_briefly("maintenance", lambda: current_maintenance(now=now))
