"""Django's registration of this app."""

from django.apps import AppConfig


class RelayConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.relay"
    label = "relay"
