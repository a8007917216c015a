"""Queries for round scores, standings, and the judge's claims about the arms."""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import QuerySet

from judge.engine import Phase
from judge.models import (
    Comparison,
    Counted,
    Round,
    Score,
    Season,
    Standing,
)
from swarm_web.nodes.models import Node


def standings_in(season: Season, window: str) -> QuerySet[Standing]:
    """Return a window's standings in the leaderboard's order, including quarantined nodes."""
    lines = Standing.objects.filter(season=season, window=window)
    return lines.select_related("node").order_by("place")


def standings_edition(season: Season, window: str) -> int:
    """Return a number that changes when a window's standings are rewritten; 0 if there are none."""
    first = Standing.objects.filter(season=season, window=window).order_by("place")
    return first.values_list("pk", flat=True).first() or 0


def counted_rounds(season: Season, window: str) -> int:
    """Return how many of the season's rounds a leaderboard's window counts."""
    return Counted.objects.filter(window=window, round__season=season).count()


def recent_scores(season: Season, nodes: Iterable[str], *, rounds: int) -> dict[str, list[float]]:
    """Return the scores of named nodes in the season's last `rounds` closed rounds, by name.

    A node's scores are ordered oldest first. Rounds without a score, and nodes without any, are
    left out.
    """
    closed = Round.objects.filter(season=season, phase=Phase.CLOSED, closed_at__isnull=False)
    scores = Score.objects.filter(
        round__in=closed.order_by("-closed_at")[:rounds],
        node__name__in=list(nodes),
    )
    found: defaultdict[str, list[float]] = defaultdict(list)
    for node, score in scores.order_by("round__number").values_list("node__name", "score"):
        if score is not None:
            found[node].append(score)
    return dict(found)


def score_history(season: Season, node_ids: Iterable[int], *, rounds: int) -> QuerySet[Score]:
    """Return these nodes' scores in the season's last `rounds` closed rounds, oldest first.

    Rounds in which a node has no score are left out.
    """
    latest = season.rounds.filter(phase=Phase.CLOSED).order_by("-number")
    numbers = list(latest.values_list("number", flat=True)[:rounds])
    return (
        Score.objects.filter(
            node_id__in=list(node_ids), round__number__in=numbers, status=Score.Status.SCORED
        )
        .select_related("round", "node")
        .order_by("round__number")
    )


def results_of_node(node: Node) -> QuerySet[Score]:
    """Return a node's results in all closed rounds, even without a score, newest first."""
    closed = node.scores.filter(round__phase=Phase.CLOSED)
    return closed.select_related("round").order_by("-round__number")


def exported_scores() -> QuerySet[Score]:
    """Return all nodes' results in closed rounds, sorted by round, then by the node's name.

    Results without a score are included.
    """
    return (
        Score.objects.filter(round__phase=Phase.CLOSED)
        .select_related("round__season", "node")
        .order_by("round__number", "node__name")
    )


def comparisons_in(season: Season) -> QuerySet[Comparison]:
    """Return the judge's claims about the arms, a row for each model."""
    return Comparison.objects.filter(season=season).order_by("model")


def differences_by_model() -> dict[str, dict[str, float]]:
    """Return the difference between the arms, swarm - isolated, by model, then season name.

    The scale is that of scores, from 0 to 1. Only ended seasons whose arms were assigned by coin
    are included, in the order in which they ended. A model is included in a season only if it had
    enough nodes and rounds for a test.
    """
    ended = Comparison.objects.filter(
        season__state=Season.State.ENDED, season__assignment=Season.Assignment.COIN
    )
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for model, season, claim in ended.order_by("model", "season__ended_at").values_list(
        "model", "season__name", "claim"
    ):
        if claim["missing"] is None:
            found[model][season] = claim["difference"]
    return dict(found)
