"""Django's entry for this app."""

from django.apps import AppConfig


class JoiningConfig(AppConfig):
    """How clients get their tokens."""

    name = "swarm_web.joining"
