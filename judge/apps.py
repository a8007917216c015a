"""Django's registration of this app."""

from django.apps import AppConfig


class JudgeConfig(AppConfig):
    """Name the app."""

    name = "judge"
