"""Django's registration of this app."""

from django.apps import AppConfig


class RelayConfig(AppConfig):
    """The relay's Django app."""

    name = "swarm_web.relay"
    label = "relay"
