"""`manage.py record_restore`: record in the chain that a backup was restored."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Max
from django.utils import timezone

from judge.models import Round
from judge.services.record import add_link


class Command(BaseCommand):
    """Add a link to the chain with the number of the last round in a restored backup.

    From this number, nodes can tell which rounds were lost.
    """

    help = "Run once after restoring a backup, before the site is started again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--reason", required=True, help="what happened; this becomes public")

    def handle(self, *, reason: str, **_options: Any) -> None:
        """Add a link to the chain that says that a backup was restored; print the link's number."""
        last = Round.objects.aggregate(last=Max("number"))["last"] or 0
        link = add_link("restored", now=timezone.now(), round=last, reason=reason)
        self.stdout.write(f"link {link.sequence} records: restored to round {last}")
