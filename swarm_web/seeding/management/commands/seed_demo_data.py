"""`manage.py seed_demo_data`: fill an empty site with invented data."""

import time
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.seeding.nodes import DemoClock
from swarm_web.seeding.sizes import SIZES
from swarm_web.seeding.writing import DemoWriter


class Command(BaseCommand):
    """Writes demo data: nodes, seasons, rounds, answers and scores."""

    help = "Fill a site with demo data, for a look or for measurements."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--size", choices=SIZES, default="small")
        parser.add_argument("--seed", type=int, default=1, help="another seed gives other data")
        parser.add_argument(
            "--present-minutes",
            type=float,
            default=60,
            help="for how many minutes the nodes count as connected",
        )
        parser.add_argument(
            "--mix-with-what-is-there",
            action="store_true",
            help="write demo data although the site has nodes or seasons: it cannot be separated "
            "from real data afterwards, and it ends the running season",
        )

    def handle(self, *, size: str, seed: int, present_minutes: float, **options: Any) -> None:
        """Write the data and print the time taken.

        Raises CommandError if the site has nodes or seasons, unless the option
        `mix_with_what_is_there` is set.
        """
        if not options["mix_with_what_is_there"]:
            refuse_site_in_use()
        now, start = timezone.now(), time.monotonic()
        clock = DemoClock(now=now, present_until=now + timedelta(minutes=present_minutes))

        def report(text: str) -> None:
            self.stdout.write(f"{time.monotonic() - start:6.1f} s  {text}")

        DemoWriter(SIZES[size], seed=seed, clock=clock, report=report).write()
        report(f"done: {size} demo data, seed {seed}")


def refuse_site_in_use() -> None:
    """Raise CommandError if the site has nodes or seasons."""
    nodes, seasons = Node.objects.count(), Season.objects.count()
    if nodes or seasons:
        raise CommandError(
            f"This site has {nodes} nodes and {seasons} seasons. Demo data could not be "
            "separated from them. Use an empty database or, if that does not matter, give "
            "--mix-with-what-is-there."
        )
