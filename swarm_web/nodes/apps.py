"""Django's registration of this app."""

from django.apps import AppConfig


class NodesConfig(AppConfig):
    """Configuration of the app."""

    name = "swarm_web.nodes"
    label = "nodes"
