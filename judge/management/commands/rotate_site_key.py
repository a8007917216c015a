"""`manage.py rotate_site_key`: sign receipts and chain heads with a new key."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from judge.services.record import rotate_site_key


class Command(BaseCommand):
    """Create a new site key, signed by the old one in a link of the chain."""

    help = "Create a new site key. Clients accept it because the old key signs it."

    def handle(self, **_options: Any) -> None:
        """Create the new key, and print its public part."""
        self.stdout.write(f"the site signs with {rotate_site_key(now=timezone.now()).public}")
