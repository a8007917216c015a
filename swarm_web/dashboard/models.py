"""The database model of the pages: announcements."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AnnouncementQuerySet(models.QuerySet["Announcement"]):
    """Queries for announcements."""

    def shown(self, *, now: datetime) -> "AnnouncementQuerySet":
        """Return the announcements that are shown at `now`, latest start first."""
        return self.filter(starts_at__lte=now, ends_at__gt=now).order_by("-starts_at", "-pk")


class Announcement(models.Model):
    """A text from the operator, shown on the home page from `starts_at` until `ends_at`."""

    text = models.TextField(max_length=500, help_text="Plain text; addresses are not made links.")
    starts_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(db_index=True)

    objects = AnnouncementQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at"]

    def __str__(self) -> str:
        return self.text[:60]

    def clean(self) -> None:
        """Raise ValidationError if start and end are given and the end is not after the start."""
        if self.starts_at and self.ends_at and self.starts_at >= self.ends_at:
            raise ValidationError({"ends_at": _("The end must be after the start.")})
