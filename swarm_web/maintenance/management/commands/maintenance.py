"""Command that starts, ends and shows maintenance."""

from argparse import ArgumentParser
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from swarm_web.maintenance.selectors import current_maintenance
from swarm_web.maintenance.services import begin_maintenance, end_maintenance


class Command(BaseCommand):
    """`manage.py maintenance on|off|show`."""

    help = "Keep nodes out while you work on the site. They train on alone and come back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the action, and the options of `on`: the message and the end time."""
        parser.add_argument("what", choices=["on", "off", "show"])
        parser.add_argument("--message", default="", help="what visitors and owners are told")
        parser.add_argument("--until", help="when it ends by itself: 2026-01-01T12:30 (UTC)")
        parser.add_argument("--minutes", type=float, help="or after how many minutes")

    def handle(self, *_args: Any, what: str, **options: Any) -> None:
        """Perform the action and print the current state.

        Raises CommandError if the end is not a valid time, or not in the future.
        """
        now = timezone.now()
        if what == "on":
            until = _read_end(options["until"], options["minutes"], now=now)
            begin_maintenance(message=options["message"], until=until, now=now)
        elif what == "off" and not end_maintenance(now=now):
            self.stdout.write("There was no maintenance.")
            return
        current = current_maintenance(now=now)
        if current is None:
            self.stdout.write("No maintenance. Nodes come back within half a minute.")
        else:
            end = "you run `manage.py maintenance off`"
            if current.ends_at:
                end = f"{current.ends_at:%Y-%m-%d %H:%M} UTC"
            self.stdout.write(f"Maintenance until {end}. {current.message}".rstrip())


def _read_end(until: str | None, minutes: float | None, *, now: datetime) -> datetime | None:
    """Return when the maintenance ends; None if neither `until` nor `minutes` is given.

    `minutes` overrides `until`. Raises CommandError for an invalid time or a time in the past.
    """
    if minutes is not None:
        try:
            end = now + timedelta(minutes=minutes)
        except (ValueError, OverflowError):
            raise CommandError(f"--minutes {minutes} leads to no valid time.") from None
    elif until is None:
        return None
    else:
        try:
            parsed = parse_datetime(until)
        except ValueError:
            parsed = None
        if parsed is None:
            raise CommandError(f"--until {until!r} is not a time such as 2026-01-01T12:30.")
        end = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    if end <= now:
        raise CommandError("The end lies in the past. Give a later --until, or none.")
    return end
