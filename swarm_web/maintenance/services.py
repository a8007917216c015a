"""Start and end a maintenance; web processes notice within a second."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from swarm_web.maintenance.models import Maintenance


@transaction.atomic
def begin_maintenance(*, message: str, until: datetime | None, now: datetime) -> Maintenance:
    """Begin a maintenance, which keeps nodes out from `now` to `until`, and return it.

    If `until` is None, it lasts until an operator ends it. If another maintenance is on, it is
    ended first.
    """
    end_maintenance(now=now)
    return Maintenance.objects.create(message=message, starts_at=now, ends_at=until)


def end_maintenance(*, now: datetime) -> int:
    """End each maintenance that is on, so that nodes are admitted; return how many were ended."""
    begun = Maintenance.objects.begun(now=now)
    return begun.filter(Q(ends_at=None) | Q(ends_at__gt=now)).update(ends_at=now)
