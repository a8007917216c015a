"""Queries for the current maintenance."""

from datetime import datetime

from swarm_web.maintenance.models import Maintenance


def latest_maintenance(*, now: datetime) -> Maintenance | None:
    """Return a maintenance that is on at `now`. If none is on, return the one that began last.

    Returns None if no maintenance has begun. Looks only at the eight maintenances that began last.
    """
    begun = list(Maintenance.objects.begun(now=now)[:8])
    return next((each for each in begun if each.is_on(now=now)), begun[0] if begun else None)


def current_maintenance(*, now: datetime) -> Maintenance | None:
    """Return the current maintenance; None if there is none."""
    latest = latest_maintenance(now=now)
    return latest if latest is not None and latest.is_on(now=now) else None
