"""Announcements in the admin."""

from django.contrib import admin

from swarm_web.dashboard.models import Announcement


@admin.register(Announcement)
class AnnouncementAdmin(admin.ModelAdmin[Announcement]):
    """The admin's list and form of the announcements on the home page."""

    list_display = ("text", "starts_at", "ends_at")
