"""Django's registration of this app."""

from django.apps import AppConfig


class JudgeConfig(AppConfig):
    """The judge's Django app."""

    name = "judge"
