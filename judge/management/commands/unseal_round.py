"""`manage.py unseal_round`: print a round's sealed questions, and record this in the chain."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from judge.models import Round
from judge.services.record import add_link


class Command(BaseCommand):
    """Record in the public chain that a round is unsealed before it closes; print its questions."""

    help = "Read a round's sealed questions. It is recorded in the public chain, with the reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("number", type=int, help="the round's number")
        parser.add_argument("--reason", required=True, help="why; this becomes public")

    def handle(self, *, number: int, reason: str, **_options: Any) -> None:
        """Record the unsealing in the chain, then print each question with its dataset and index.

        Raises CommandError if the round is unknown, is already public, or has no questions yet.
        """
        judge_round = Round.objects.filter(number=number).first()
        if judge_round is None:
            raise CommandError(f"There is no round {number}.")
        if judge_round.is_revealed:
            raise CommandError(f"Round {number} is already public: read it on its page.")
        if not judge_round.is_drawn:
            raise CommandError(
                f"Round {number} has no questions yet: it waits for the public beacon."
            )
        add_link("unsealed", now=timezone.now(), round=number, reason=reason)
        for question in judge_round.questions.order_by("position"):
            line = f"{question.position}. {question.dataset} {question.spec['index']}"
            self.stdout.write(f"{line}\n{question.prompt}\n")
