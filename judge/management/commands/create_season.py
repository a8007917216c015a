"""`manage.py create_season`: create a season and start it."""

import re
from itertools import chain, count
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.forms import ValidationError
from django.utils import timezone

from judge.models import Season
from judge.selectors.seasons import running_season
from judge.services.seasons import start_season
from judge.task_mix import check_lasting, check_tasks
from swarm_tasks.starter import DEMO_TASKS, YEAR_TASKS
from swarm_web.core.verifiers import process_verifier

# Rounds are short, so that a demo on one machine has scores within its first minute. They have
# enough questions to show within ten minutes that sharing nodes score higher than an isolated one
# (`bench.demo_sharing`).
DEMO: dict[str, Any] = {
    "questions_per_round": 128,
    "cadence_seconds": 45,
    "open_seconds": 40,
    "scoring_seconds": 20,
    # About 25 minutes; by then tiny models have nearly reached what they can learn.
    "planned_rounds": 34,
    "max_new_tokens": 32,
    # So that nobody waits for a second round to see a first score.
    "late_joiners": Season.LateJoiners.JOIN,
}


class Command(BaseCommand):
    """Create and start a season with questions for a year, or a short one for a demo (`--demo`).

    Does nothing if a season is running, with one exception: `--demo` replaces a running season that
    the judge has paused (`Season.halt_reason`) and whose name is that of `--name`, alone or with a
    number. If the name of the new season is taken, `--demo` adds a number to it; without `--demo`,
    CommandError is raised. CommandError is also raised if the task mix fails a check.
    """

    help = "Create and start a season with questions for a year, unless one is running."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--name", default="First light")
        parser.add_argument("--demo", action="store_true", help="short rounds for tiny models")

    def handle(self, *, name: str, demo: bool, **_options: object) -> None:
        """Create and start the season."""
        running = running_season()
        # A restarted demo needs rounds too, so it gets a new season when its own was halted.
        if running and not (demo and running.halt_reason and _is_numbered(running.name, name)):
            self.stdout.write(f"season {running.name} is running already")
            return
        season = Season(**(DEMO if demo else {}))
        tasks = list(DEMO_TASKS if demo else YEAR_TASKS)
        season.tasks = msgspec.to_builtins(tasks)
        try:
            check_tasks(tasks, verifier=process_verifier())
            check_lasting(tasks, season.questions_per_round, rounds=season.rounds_to_ask)
        except ValidationError as problem:
            raise CommandError("; ".join(problem.messages)) from None
        # The checks take seconds, in which another process may have started a season.
        if (started := running_season()) is not None and started != running:
            self.stdout.write(f"season {started.name} is running already")
            return
        season.name = _find_free_name(name) if demo else name
        if Season.objects.filter(name=season.name).exists():
            raise CommandError(f"A season {name} exists. Choose another name with --name.")
        season.save()
        start_season(season, now=timezone.now())
        self.stdout.write(f"season {season.name} is running")


def _is_numbered(name: str, base: str) -> bool:
    """Return whether `name` is `base`, or `base` with a number, such as "First light 2"."""
    return re.fullmatch(re.escape(base) + r"( \d+)?", name) is not None


def _find_free_name(name: str) -> str:
    """Return `name`, or if a season has this name, `name` with the first free number from 2."""
    taken = set(Season.objects.filter(name__startswith=name).values_list("name", flat=True))
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(free for free in names if free not in taken)
