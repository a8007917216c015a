"""The leaderboard: judge standings joined with what nodes are and contributed.

Page, API, live socket and the node's own terminal panel all read these rows, so they agree.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from judge.models import Season, Standing
from judge.selectors import standings_in
from judge.stats import Interval
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution


@dataclass(frozen=True)
class LeaderboardRow:
    """One node's line; `score` and `interval` are fractions in [0, 1] over `n` questions.

    `rank` is (best, worst), or None while `remark` (Standing.Remark) says why the node is not
    ranked. `cells` maps each dataset to (correct, n).
    """

    rank: tuple[int, int] | None
    remark: str
    node: str
    model: str
    parameters: int
    arm: str
    score: float
    interval: Interval
    n: int
    rounds: int
    cells: dict[str, tuple[int, int]]
    external_used: int
    last_seen: datetime | None
    connected: bool

    @property
    def why_unranked(self) -> str:
        """The remark in words."""
        return str(Standing.Remark(self.remark).label) if self.remark else ""

    @property
    def is_base(self) -> bool:
        """Whether this is an untrained model, shown for comparison."""
        return self.remark == Standing.Remark.BASE


@dataclass(frozen=True)
class Leaderboard:
    """A season's ranking over a window, and who has joined but was not judged in it yet.

    `base` are the untrained models to compare with; of quarantined nodes only the number is told.
    `recent_rounds` is how many rounds the window "recent" spans, and `minimum_questions` from how
    many questions on a node is ranked.
    """

    season: str
    window: str
    as_of: datetime
    recent_rounds: int
    minimum_questions: int
    rows: list[LeaderboardRow]
    base: list[LeaderboardRow]
    quarantined: int
    waiting: list[str]

    @property
    def leaders(self) -> list[LeaderboardRow]:
        """The nodes than which none is surely better: more than one where they tie."""
        return [row for row in self.rows if row.rank is not None and row.rank[0] == 1]

    @property
    def ranked(self) -> int:
        """How many nodes are ranked."""
        return sum(row.rank is not None for row in self.rows)


def read_leaderboard(season: Season, *, window: str, now: datetime) -> Leaderboard:
    """Return the season's leaderboard in a constant number of queries."""
    standings = list(standings_in(season, window))
    used = dict(_used(season))
    lines = [
        _describe(standing, external_used=used.get(standing.node_id, 0), now=now)
        for standing in standings
        if standing.remark != Standing.Remark.QUARANTINED
    ]
    waiting = Node.objects.connected(now=now).exclude(pk__in=[s.node_id for s in standings])
    return Leaderboard(
        season=season.name,
        window=window,
        as_of=now,
        recent_rounds=season.recent_rounds,
        minimum_questions=season.minimum_questions,
        rows=[line for line in lines if not line.is_base],
        base=[line for line in lines if line.is_base],
        quarantined=len(standings) - len(lines),
        waiting=list(waiting.values_list("name", flat=True)),
    )


def read_line(node: Node, *, season: Season, window: str, now: datetime) -> LeaderboardRow | None:
    """Return one node's line, quarantined or not, if it was judged in the window."""
    standing = standings_in(season, window).filter(node=node).first()
    if standing is None:
        return None
    used = dict(_used(season).filter(node=node))
    return _describe(standing, external_used=used.get(node.pk, 0), now=now)


def read_base(model: str, *, season: Season, window: str, now: datetime) -> list[LeaderboardRow]:
    """Return the lines of a model's untrained nodes; what they took from others is left at 0."""
    standings = standings_in(season, window).filter(remark=Standing.Remark.BASE, model=model)
    return [_describe(standing, external_used=0, now=now) for standing in standings]


def count_ranked(season: Season, window: str) -> int:
    """Return how many nodes are ranked."""
    return standings_in(season, window).filter(remark=Standing.Remark.NONE).count()


def _used(season: Season) -> QuerySet[Contribution, tuple[int, int]]:
    """Return how many rollouts of others each node trained on."""
    contributions = Contribution.objects.filter(season=season)
    return contributions.values_list("node_id", "external_used")


def _describe(standing: Standing, *, external_used: int, now: datetime) -> LeaderboardRow:
    return LeaderboardRow(
        rank=_rank(standing),
        remark=standing.remark,
        node=standing.node.name,
        model=standing.model,
        parameters=standing.node.parameters,
        arm=standing.arm,
        score=standing.score,
        interval=(standing.interval_low, standing.interval_high),
        n=standing.n,
        rounds=standing.rounds,
        cells={dataset: (cell[0], cell[1]) for dataset, cell in standing.cells.items()},
        external_used=external_used,
        last_seen=standing.node.last_seen,
        connected=standing.node.is_connected(now=now),
    )


def _rank(standing: Standing) -> tuple[int, int] | None:
    if standing.rank_low is None or standing.rank_high is None:
        return None
    return standing.rank_low, standing.rank_high
