"""Django's registration of this app."""

from django.apps import AppConfig


class NodesConfig(AppConfig):
    """The nodes' Django app."""

    name = "swarm_web.nodes"
    label = "nodes"
