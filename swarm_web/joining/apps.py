"""Django's entry for this app."""

from django.apps import AppConfig


class JoiningConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.joining"
