"""Who moved most between a season's last two rounds, and surely; pure but for the reading."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from judge.models import Round, Ruling, Score, Season
from swarm_web.nodes.models import Node

# The exact test is made for the largest changes only.
_CANDIDATES = 20
ALPHA = 0.05


@dataclass(frozen=True)
class Change:
    """One node's results in two rounds, questions solved of those asked."""

    node: str
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def difference(self) -> float:
        """By how much the share of solved questions rose, as a fraction of one."""
        return self.after[0] / self.after[1] - self.before[0] / self.before[1]

    @property
    def z(self) -> float:
        """The change in standard errors, both rounds pooled; only to put changes in order."""
        n_before, n_after = self.before[1], self.after[1]
        share = (self.before[0] + self.after[0]) / (n_before + n_after)
        error = sqrt(share * (1 - share) * (1 / n_before + 1 / n_after))
        return self.difference / error if error else 0.0


@dataclass(frozen=True)
class Moves:
    """The surest mover of the season's last two rounds, if any moved surely, of `compared` nodes.

    `rounds` are their numbers; None while there are not two.
    """

    mover: Change | None
    compared: int
    rounds: tuple[int, int] | None


def find_mover(changes: Sequence[Change], *, alpha: float = ALPHA) -> Change | None:
    """Return the change that chance hardly makes; None where each could be luck.

    Fisher's exact test of solved and missed questions in the two rounds, corrected after
    Bonferroni for all nodes compared: the largest of many changes is large by itself.
    """
    largest = sorted(changes, key=lambda change: -abs(change.z))[:_CANDIDATES]
    tested = [(_p_value(change), change) for change in largest]
    sure = [(p, change) for p, change in tested if p * len(changes) <= alpha]
    return min(sure, key=lambda found: found[0])[1] if sure else None


def _p_value(change: Change) -> float:
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import fisher_exact

    table = [[solved, asked - solved] for solved, asked in (change.before, change.after)]
    return float(fisher_exact(table).pvalue)


def read_moves(season: Season) -> Moves:
    """Compare the season's last two closed rounds; the work is done once a round."""
    closed = Round.objects.filter(season=season, phase=Round.Phase.CLOSED, closed_at__isnull=False)
    latest = list(closed.order_by("-closed_at").values_list("pk", "number")[:2])
    if len(latest) < 2:
        return Moves(None, 0, None)
    (after, after_number), (before, before_number) = latest
    ruling = Ruling.objects.values_list("pk", flat=True).first()
    mover, compared = _compare(before, after, ruling)
    return Moves(mover, compared, (before_number, after_number))


@lru_cache(maxsize=8)
def _compare(before: int, after: int, _ruling: int | None) -> tuple[Change | None, int]:
    """Compare two closed rounds, whose scores change only by a ruling of the operator."""
    scored = Score.objects.filter(status=Score.Status.SCORED, node__quarantined=False)
    scored = scored.exclude(arm=Node.Arm.BASE)
    earlier = {
        node: (correct, n)
        for node, correct, n in scored.filter(round=before).values_list("node", "correct", "n")
    }
    later = scored.filter(round=after)
    changes = [
        Change(name, earlier[node], (correct, n))
        for node, name, correct, n in later.values_list("node", "node__name", "correct", "n")
        if node in earlier
    ]
    return find_mover(changes), len(changes)
