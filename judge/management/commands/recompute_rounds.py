"""`manage.py recompute_rounds`: grade closed rounds again and replace their scores."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Exists, OuterRef
from django.utils import timezone

from judge.models import Round, Score
from judge.services.oversight import recompute_round
from swarm_web.core.verifiers import process_verifier


class Command(BaseCommand):
    """Recompute closed rounds: by default those with a score that has no results by dataset."""

    help = "Grade closed rounds again: by default those whose scores lack cells by dataset."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--every", action="store_true", help="all closed rounds, not only those without cells"
        )

    def handle(self, *, every: bool, **_options: Any) -> None:
        """Recompute closed rounds, oldest first, and print how many scores changed in each.

        Without `every`, only rounds in which a scored node's `cells` are empty are recomputed.
        """
        closed = Round.objects.filter(phase=Round.Phase.CLOSED).select_related("season")
        bare = Score.objects.filter(round=OuterRef("pk"), status=Score.Status.SCORED, cells={})
        for judge_round in (closed if every else closed.filter(Exists(bare))).order_by("number"):
            ruling = recompute_round(
                judge_round,
                reason="recomputed with manage.py recompute_rounds",
                actor=None,
                now=timezone.now(),
                verifier=process_verifier(),
            )
            if ruling is not None:
                changed = ruling.changes["scores_changed"]
                self.stdout.write(f"{judge_round}: {changed} scores changed")
