"""`manage.py plan_trial`: how many nodes a trial needs to show the effect of sharing."""

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from judge.models import Comparison
from judge.statistics.comparison import MIN_NODES_PER_ARM, ArmsClaim, alpha_per_model
from judge.statistics.planning import POWER, ScoreSpread, plan_nodes

# Fractions of the requested rounds that the table shows.
_FRACTIONS = (0.125, 0.25, 0.5, 1)


class Command(BaseCommand):
    """Print how many nodes each arm needs to show a difference, given how much nodes differ."""

    help = "Print how many nodes each arm needs to show a difference of the given size."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--effect", type=float, default=5.0, help="the difference, in points")
        parser.add_argument("--rounds", type=int, default=200, help="rounds of the trial")
        parser.add_argument("--models", type=int, default=1, help="models tested in the season")
        parser.add_argument(
            "--like", metavar="MODEL", help="use the spread of a model that was tested"
        )
        parser.add_argument(
            "--spread", type=float, default=5.0, help="standard deviation between nodes, in points"
        )
        parser.add_argument(
            "--noise", type=float, default=8.0, help="standard deviation of one round, in points"
        )

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
        """Print how many nodes each arm needs to show a difference of `effect`.

        Prints a line for each fraction in _FRACTIONS, about a trial with that fraction of `rounds`.
        `models` is the number of models that the season tests. `spread` is the standard deviation
        between nodes, and `noise` is that of one node's score between rounds. `effect`, `spread`
        and `noise` are in points; a point is a score of 0.01. If `like` names a model, the measured
        values of this model replace `spread` and `noise`.

        Raises CommandError if a value is out of range, or if no season tested the model `like`.
        """
        if effect <= 0 or rounds < 1 or models < 1 or min(spread, noise) < 0:
            raise CommandError(
                "The effect must be above 0, rounds and models at least 1, spreads at least 0."
            )
        known = read_spread(like) if like else ScoreSpread(nodes=spread / 100, rounds=noise / 100)
        self.stdout.write(
            f"A difference of {effect:g} points in {POWER:.0%} of trials; nodes differ by "
            f"{100 * known.nodes:.1f} points, single rounds by {100 * known.rounds:.1f}."
        )
        self.stdout.write("rounds  nodes in each arm")
        for part in _FRACTIONS:
            after = max(1, round(part * rounds))
            needed = plan_nodes(
                effect / 100,
                spread=known,
                rounds=after,
                alpha=alpha_per_model(models=models),
                minimum=MIN_NODES_PER_ARM,
            )
            self.stdout.write(f"{after:>6}  {needed:>17,}")


def read_spread(model: str) -> ScoreSpread:
    """Return the spread of a model's scores in the newest season that tested the model.

    Raises CommandError if no season tested the model.
    """
    newest = Comparison.objects.filter(model=model).order_by("-season_id")
    for stored in newest.values_list("claim", flat=True):
        claim = msgspec.convert(stored, ArmsClaim)
        if claim.spread is not None:
            return claim.spread
    raise CommandError(
        f"The arms of {model!r} were never tested. Give --spread and --noise instead of --like."
    )
