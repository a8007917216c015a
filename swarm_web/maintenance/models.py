"""Maintenances: their times and their messages to visitors and owners."""

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

# The longest pause between a node's attempts to connect during a maintenance. After its end, all
# nodes have reconnected within this time.
RETURN_TIME = timedelta(seconds=30)


class MaintenanceQuerySet(models.QuerySet["Maintenance"]):
    """QuerySet of maintenances."""

    def begun(self, *, now: datetime) -> "MaintenanceQuerySet":
        """Filter to maintenances that have begun, including ended ones, newest first."""
        return self.filter(starts_at__lte=now).order_by("-starts_at", "-pk")


class Maintenance(models.Model):
    """A maintenance. It ends at `ends_at`; if that is None, it lasts until the operator ends it."""

    message = models.CharField(
        max_length=200,
        blank=True,
        help_text=_("Plain text for visitors and owners, for example what is being done and why."),
    )
    starts_at = models.DateTimeField(default=timezone.now, db_index=True)
    ends_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=_("If empty, it lasts until you set this to the current time."),
    )

    objects = MaintenanceQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at"]
        verbose_name = _("maintenance")
        verbose_name_plural = _("maintenances")

    def __str__(self) -> str:
        return self.message[:60] or f"from {self.starts_at:%Y-%m-%d %H:%M}"

    def is_on(self, *, now: datetime) -> bool:
        """Return whether the maintenance is on at `now`, so that nodes are kept out."""
        return self.starts_at <= now and (self.ends_at is None or now < self.ends_at)

    def counts_as_outage(self, *, now: datetime) -> bool:
        """Return whether the maintenance counts as an outage at `now`, so that deadlines move.

        It counts from its start until RETURN_TIME after its end, so that nodes can reconnect. If it
        has no end, it counts from its start on.
        """
        return self.starts_at <= now and (self.ends_at is None or now < self.ends_at + RETURN_TIME)

    @property
    def node_message(self) -> str:
        """The message for a node's panel, in English like all of the protocol."""
        until = "" if self.ends_at is None else f" until {self.ends_at:%H:%M} UTC"
        reason = f": {self.message}" if self.message else ""
        return f"the coordinator is under maintenance{until}{reason}"
