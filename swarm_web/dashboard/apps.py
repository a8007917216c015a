"""Django's registration of this app."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.dashboard"
    label = "dashboard"
