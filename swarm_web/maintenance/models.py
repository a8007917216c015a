"""When the operator works on the site, and what visitors and owners are told of it."""

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

# How soon nodes ask again during a maintenance, and so how soon they are back after it.
RETURN = timedelta(seconds=30)


class MaintenanceQuerySet(models.QuerySet["Maintenance"]):
    """Sets of maintenances."""

    def begun(self, *, now: datetime) -> "MaintenanceQuerySet":
        """Keep those that have begun, the latest first."""
        return self.filter(starts_at__lte=now).order_by("-starts_at", "-pk")


class Maintenance(models.Model):
    """One maintenance. It is over at `ends_at`, or goes on until somebody ends it."""

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
        """Whether nodes are kept out."""
        return self.starts_at <= now and (self.ends_at is None or now < self.ends_at)

    def counts_as_outage(self, *, now: datetime) -> bool:
        """Whether the judge waits: until all nodes had the time to come back."""
        return self.starts_at <= now and (self.ends_at is None or now < self.ends_at + RETURN)

    @property
    def told_to_nodes(self) -> str:
        """What a node's panel shows; English, as all of the protocol."""
        until = "" if self.ends_at is None else f" until {self.ends_at:%H:%M} UTC"
        reason = f": {self.message}" if self.message else ""
        return f"the coordinator is under maintenance{until}{reason}"
