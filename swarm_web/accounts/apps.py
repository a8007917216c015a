"""Django's registration of this app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Name the app; its label differs from allauth's `account`."""

    name = "swarm_web.accounts"
    label = "accounts"
