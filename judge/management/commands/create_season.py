"""`manage.py create_season`: make a season and start it."""

from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.forms import ValidationError
from django.utils import timezone

from judge.forms import check_tasks
from judge.models import Season
from judge.selectors import running_season
from judge.services.seasons import start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.verifiers import process_verifier

# Short rounds, so that a demo on one machine is judged within its first minute. Enough questions to
# tell nodes that share from one alone within ten minutes (`bench.demo_sharing`).
DEMO: dict[str, Any] = {
    "questions_per_round": 128,
    "cadence_seconds": 45,
    "open_seconds": 40,
    "scoring_seconds": 20,
    "max_new_tokens": 32,
    # Nobody should wait for a second round to see a first score.
    "late_joiners": Season.LateJoiners.JOIN,
}


class Command(BaseCommand):
    """Create a season with the starter mix; more is configured in the admin."""

    help = "Create a season on the starter task mix and start it, unless one is running."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--name", default="First light")
        parser.add_argument("--demo", action="store_true", help="short rounds and short answers")

    def handle(self, *, name: str, demo: bool, **_options: object) -> None:
        """Create and start the season."""
        running = running_season()
        if running is not None:
            self.stdout.write(f"season {running.name} is running already")
            return
        tasks = list(STARTER_TASKS)
        try:
            check_tasks(tasks, verifier=process_verifier())
        except ValidationError as problem:
            raise CommandError("; ".join(problem.messages)) from None
        if Season.objects.filter(name=name).exists():
            raise CommandError(f"A season {name} exists. Choose another name with --name.")
        season = Season.objects.create(
            name=name, tasks=msgspec.to_builtins(tasks), **(DEMO if demo else {})
        )
        start_season(season, now=timezone.now())
        self.stdout.write(f"season {season.name} is running")
