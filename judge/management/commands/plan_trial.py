"""`manage.py plan_trial`: how many nodes it takes to show what sharing does."""

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from judge.comparison import MIN_NODES_PER_ARM, Claim, share_level
from judge.models import Comparison
from judge.planning import POWER, Spread, plan_nodes

# What is tabulated of the rounds that were asked for.
_PARTS = (0.125, 0.25, 0.5, 1)


class Command(BaseCommand):
    """Say how many nodes each arm needs, from how much nodes differ."""

    help = "Say how many nodes each arm needs for a claim about a difference of so many points."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--effect", type=float, default=5.0, help="the difference, in points")
        parser.add_argument("--rounds", type=int, default=200, help="rounds of the trial")
        parser.add_argument("--models", type=int, default=1, help="models tested in the season")
        parser.add_argument("--like", metavar="MODEL", help="take the spread of a tested model")
        parser.add_argument("--spread", type=float, default=5.0, help="between nodes, in points")
        parser.add_argument("--noise", type=float, default=8.0, help="of one round, in points")

    def handle(
        self,
        *,
        effect: float,
        rounds: int,
        models: int,
        like: str | None,
        spread: float,
        noise: float,
        **_options: object,
    ) -> None:
        """Print the nodes that each arm needs after some numbers of rounds."""
        if effect <= 0 or rounds < 1 or models < 1 or min(spread, noise) < 0:
            raise CommandError("Give an effect above 0, 1 round and model or more, spreads from 0.")
        known = read_spread(like) if like else Spread(nodes=spread / 100, rounds=noise / 100)
        self.stdout.write(
            f"A difference of {effect:g} points in {POWER:.0%} of trials; nodes differ by "
            f"{100 * known.nodes:.1f} points, single rounds by {100 * known.rounds:.1f}."
        )
        self.stdout.write("rounds  nodes in each arm")
        for part in _PARTS:
            after = max(1, round(part * rounds))
            needed = plan_nodes(
                effect / 100,
                spread=known,
                rounds=after,
                alpha=share_level(models=models),
                least=MIN_NODES_PER_ARM,
            )
            self.stdout.write(f"{after:>6}  {needed:>17,}")


def read_spread(model: str) -> Spread:
    """Return the spread in the newest season in which a model was tested. Raises CommandError."""
    newest = Comparison.objects.filter(model=model).order_by("-season_id")
    for stored in newest.values_list("claim", flat=True):
        claim = msgspec.convert(stored, Claim)
        if claim.spread is not None:
            return claim.spread
    raise CommandError(
        f"The arms of {model!r} were never tested. Give --spread and --noise instead of --like."
    )
