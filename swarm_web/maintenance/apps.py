"""Django's registration of this app."""

from django.apps import AppConfig


class MaintenanceConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.maintenance"
    label = "maintenance"
