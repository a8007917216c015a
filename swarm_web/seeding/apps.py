"""The app of `manage.py seed_demo_data`; it has no tables of its own."""

from django.apps import AppConfig


class SeedingConfig(AppConfig):
    """Registers the app."""

    name = "swarm_web.seeding"
    label = "seeding"
