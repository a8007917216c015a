"""`manage.py unseal_round`: read sealed questions, which the chain then tells everybody."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from judge.models import Round
from judge.services.record import add_link


class Command(BaseCommand):
    """Show the questions of a round that has not closed, after a link of the chain says so."""

    help = "Read a round's sealed questions. It is recorded in the public chain, with the reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("number", type=int, help="the round's number")
        parser.add_argument("--reason", required=True, help="why; it becomes public")

    def handle(self, *, number: int, reason: str, **_options: Any) -> None:
        """Add the link, then print each question with its index."""
        judge_round = Round.objects.filter(number=number).first()
        if judge_round is None:
            raise CommandError(f"There is no round {number}.")
        if judge_round.is_revealed:
            raise CommandError(f"Round {number} is public: read it on its page.")
        if not judge_round.is_drawn:
            raise CommandError(f"Round {number} waits for the public beacon: it has no questions.")
        add_link("unsealed", now=timezone.now(), round=number, reason=reason)
        for question in judge_round.questions.order_by("position"):
            told = f"{question.position}. {question.dataset} {question.spec['index']}"
            self.stdout.write(f"{told}\n{question.prompt}\n")
