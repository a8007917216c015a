"""Announcements in the admin."""

from django.contrib import admin

from swarm_web.dashboard.models import Announcement


@admin.register(Announcement)
class AnnouncementAdmin(admin.ModelAdmin[Announcement]):
    """What the home page announces, and from when to when."""

    list_display = ("text", "starts_at", "ends_at")
