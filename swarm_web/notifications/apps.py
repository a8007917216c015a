"""Django's registration of this app."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.notifications"
    label = "notifications"
