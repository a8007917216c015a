"""What every template may show: the site's name and address, and the round pill."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from swarm_web.dashboard.reports.pill import read_pill


def describe_site(_request: HttpRequest) -> dict[str, object]:
    """Name the site; the pill is read only by pages that show it."""
    return {
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "pill": SimpleLazyObject(lambda: read_pill(now=timezone.now())),
    }
