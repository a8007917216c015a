"""A node's report: whether it works, why, and every number about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Count, Max
from django.shortcuts import get_object_or_404

from judge.models import Answer, Score, Season
from judge.selectors.scores import results_of_node
from judge.selectors.seasons import shown_season
from swarm_record.stats import Interval, macro_interval
from swarm_web.accounts.selectors import public_owner_of
from swarm_web.board.leaderboard import LeaderboardRow, count_ranked, read_row
from swarm_web.core.keyset import Keyset, KeyText, Listing
from swarm_web.dashboard.reports.board import Lift, WithLift, measure_lift
from swarm_web.dashboard.reports.conduct import HandOut
from swarm_web.dashboard.reports.node_charts import WINDOW, read_bases, scores_since_start
from swarm_web.dashboard.reports.node_health import (
    NodeHealth,
    SeatStatus,
    judge_health,
    read_seat_status,
)
from swarm_web.dashboard.reports.round import RulingLine, describe_rulings
from swarm_web.edge.brief_cache import keep_briefly
from swarm_web.nodes.models import Node, NodeKey
from swarm_web.relay.models import Contribution
from swarm_web.relay.selectors.conduct import find_conduct
from swarm_web.relay.selectors.history import training_points
from swarm_web.relay.selectors.pooled import delivered_to_others

# Honest nodes also pause and update their weights in training: nodes of the demo, which are idle
# for most of a step, answer four times as fast.
SUSPICIOUS_RATIO = 100.0
# Number of results in the API, and on the page; charts show more.
LISTED_ROUNDS = 60
SHOWN_ROUNDS = 15
# Columns of scores and rounds that a node's report does not use.
_DEFERRED = ("answered", "solved", "round__rules", "round__secret")


# ---- answer speed


@dataclass(frozen=True)
class AnswerSpeed:
    """How fast a node answered in round `number`, compared with how fast it generates in training.

    `answers` is the number of its answers, the last of which arrived `milliseconds` after the
    questions were sent. `training` is the number of completions per second in training, as
    `_training_speed` estimates it; None if that is unknown.
    """

    number: int
    answers: int
    milliseconds: int
    training: float | None

    @property
    def ratio(self) -> float | None:
        """Answers per second, divided by completions per second in training; None if unknown."""
        if not self.training:
            return None
        return 1000 * self.answers / max(1, self.milliseconds) / self.training

    @property
    def times(self) -> int:
        """`ratio`, rounded to a whole number; 0 if `ratio` is None."""
        return round(self.ratio or 0)

    @property
    def is_suspicious(self) -> bool:
        """Whether `ratio` is above SUSPICIOUS_RATIO: too fast for the model that is trained."""
        return self.ratio is not None and self.ratio > SUSPICIOUS_RATIO


def read_answer_speed(node: Node, season: Season, last: Score) -> AnswerSpeed | None:
    """Return how fast a node answered in the round of its result `last`.

    Returns None if no answer of the node in that round is stored, or none has a latency.
    """
    answers = Answer.objects.filter(node=node, question__round=last.round_id)
    found = answers.aggregate(answers=Count("pk"), latency_ms=Max("latency_ms"))
    if not found["answers"] or found["latency_ms"] is None:
        return None
    return AnswerSpeed(
        number=last.round.number,
        answers=found["answers"],
        milliseconds=found["latency_ms"],
        training=_training_speed(node, season),
    )


def _training_speed(node: Node, season: Season) -> float | None:
    """Estimate a node's completions per second from its last two stored training reports.

    None if there are fewer than two, or if the step or the time did not increase between them.
    """
    points = training_points(node, season_id=season.pk, limit=2)
    if len(points) < 2:
        return None
    before, now = points
    steps, seconds = now.step - before.step, (now.at - before.at).total_seconds()
    if steps <= 0 or seconds <= 0:
        return None
    rollouts = season.batch or season.local + season.external
    return steps * rollouts * season.completions / seconds


# ---- the report


@dataclass(frozen=True)
class Cell:
    """A node's result in one dataset: `share` is correct / n, with its 95 % interval."""

    dataset: str
    correct: int
    n: int
    share: float
    interval: Interval


@dataclass(frozen=True)
class NodeLine:
    """A node in a list, and whether it is connected."""

    node: Node
    connected: bool


@dataclass(frozen=True)
class Unjudged:
    """Empty values instead of a `LeaderboardRow`, for a node that is not on the leaderboard."""

    rank: None = None
    remark: str = ""
    score: None = None
    interval: None = None
    n: int = 0
    rounds: int = 0
    missed: int = 0


@dataclass(frozen=True)
class NodeReport(WithLift):
    """What is known about a node in the shown season; `season` is None before the first one.

    `row` is the node's row on the season's leaderboard, `lift` its comparison with the same model
    untrained, and `ranked` the number of nodes that have a rank. `cells` are the node's results by
    dataset, `scores` its results by round, newest first. `seat` is its seat in the current round,
    and `speed` how fast it answered in the latest round that it has a result for. `signing_keys`
    are the public keys that it has announced for its signatures. `delivered_to_others` counts how
    often its rollouts were delivered to other nodes; None if unknown. `hand_out` says why the
    node's hand-out weight is below 1; None if it is 1. `verdict` says whether the node works.
    """

    node: Node
    connected: bool
    season: Season | None
    row: LeaderboardRow | None
    lift: Lift | None
    ranked: int
    cells: list[Cell]
    scores: list[Score]
    seat: SeatStatus | None
    speed: AnswerSpeed | None
    contribution: Contribution | None
    delivered_to_others: int | None
    hand_out: HandOut | None
    rulings: list[RulingLine]
    signing_keys: list[NodeKey]
    verdict: NodeHealth

    @property
    def dropped(self) -> list[tuple[str, int]]:
        """The node's own counts of external rollouts that it dropped, as (reason, number)."""
        return sorted(self.contribution.external_dropped.items()) if self.contribution else []

    @property
    def season_name(self) -> str | None:
        """The season's name; None before the first season."""
        return self.season.name if self.season else None

    @property
    def standing(self) -> LeaderboardRow | Unjudged:
        """The node's row on the leaderboard; `Unjudged` if it has none."""
        return self.row or Unjudged()

    @property
    def cells_by_dataset(self) -> dict[str, Cell]:
        """The node's result in each dataset, by the name of the dataset."""
        return {cell.dataset: cell for cell in self.cells}

    @cached_property
    def participation(self) -> Contribution:
        """The node's contribution to the season; all zeros if it has none."""
        return self.contribution or Contribution()

    @property
    def declarations_count(self) -> bool:
        """Whether the node's declarations about its rollouts count; False once they have lapsed."""
        return self.participation.declarations_lapsed_at is None


def load_node(name: str) -> Node:
    """Return the node of that name. Raises Http404 if there is none."""
    return get_object_or_404(Node, name=name)


def read_owner(node: Node) -> str:
    """Return the name of a node's owner.

    Empty if the node has no owner, or if the owner's account is inactive or has no public profile.
    """
    return public_owner_of(node)


def list_nodes_by_name(start: str) -> Listing[Node]:
    """List the nodes whose names begin with `start`, by name."""
    nodes = Node.objects.filter(name__startswith=start)
    return Listing(nodes, Keyset("name", kind=tuple[KeyText]))


def list_results_of_node(node: Node) -> Listing[Score]:
    """List a node's results in the closed rounds of all seasons, newest round first."""
    return Listing(results_of_node(node), Keyset("-round__number"))


def read_report(node: Node, *, now: datetime, rounds: int = LISTED_ROUNDS) -> NodeReport:
    """Read a node's report with at most `rounds` results, in a constant number of queries."""
    season = keep_briefly("season", shown_season)
    contribution = Contribution.objects.filter(node=node, season=season).first()
    row = (
        read_row(node, season=season, window=WINDOW, now=now, contribution=contribution)
        if season
        else None
    )
    scores = list(scores_since_start(node, season).defer(*_DEFERRED)[:rounds]) if season else []
    seat = read_seat_status(node, season, now=now) if season else None
    connected = node.is_connected(now=now)
    return NodeReport(
        node=node,
        connected=connected,
        season=season,
        row=row,
        lift=_read_lift(row, season=season, now=now),
        ranked=_count_ranked(season) if season else 0,
        cells=describe_cells(row.cells) if row else [],
        scores=scores,
        seat=seat,
        speed=read_answer_speed(node, season, scores[0]) if season and scores else None,
        contribution=contribution,
        delivered_to_others=(delivered_to_others(node.pk, season_id=season.pk) if season else None),
        hand_out=_read_hand_out(node, season),
        rulings=describe_rulings(node.rulings.order_by("made_at")),
        signing_keys=list(node.keys.all()),
        verdict=judge_health(
            node,
            connected=connected,
            season_runs=season is not None and season.state == Season.State.RUNNING,
            scores=scores,
            row=row,
            minimum=season.minimum_questions if season else 0,
            seat=seat,
        ),
    )


def _read_hand_out(node: Node, season: Season | None) -> HandOut | None:
    row = find_conduct(node, season_id=season.pk) if season else None
    return HandOut(row) if row and row.is_held else None


def _count_ranked(season: Season) -> int:
    """Return how many nodes have a rank; cached, because all standings are scanned."""
    return keep_briefly(f"ranked:{season.pk}", lambda: count_ranked(season))


def describe_cells(cells: Mapping[str, tuple[int, int]]) -> list[Cell]:
    """Return a Cell for each dataset, sorted by dataset; `cells` maps a dataset to (correct, n)."""
    return [
        Cell(dataset, correct, n, correct / n, macro_interval(correct / n, n))
        for dataset, (correct, n) in sorted(cells.items())
    ]


def _read_lift(row: LeaderboardRow | None, *, season: Season | None, now: datetime) -> Lift | None:
    if row is None or season is None or row.is_base:
        return None
    return measure_lift(row, read_bases(row.model, season, now=now))
