"""The app of `manage.py seed_demo_data`; it has no tables of its own."""

from django.apps import AppConfig


class SeedingConfig(AppConfig):
    """Name the app."""

    name = "swarm_web.seeding"
    label = "seeding"
