"""What the site's own pages keep."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AnnouncementQuerySet(models.QuerySet["Announcement"]):
    """Sets of announcements."""

    def shown(self, *, now: datetime) -> "AnnouncementQuerySet":
        """Keep those whose time it is, the latest first."""
        return self.filter(starts_at__lte=now, ends_at__gt=now).order_by("-starts_at", "-pk")


class Announcement(models.Model):
    """What the operator tells visitors of the home page for a while, as plain text."""

    text = models.TextField(max_length=500, help_text="Plain text; addresses are not made links.")
    starts_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(db_index=True)

    objects = AnnouncementQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at"]

    def __str__(self) -> str:
        return self.text[:60]

    def clean(self) -> None:
        """Refuse an announcement that nobody would see."""
        if self.starts_at and self.ends_at and self.starts_at >= self.ends_at:
            raise ValidationError({"ends_at": _("The end must be after the start.")})
