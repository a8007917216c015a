"""Compares swarm and isolated nodes in a season: reads their results, stores the judge's claims."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import msgspec
import numpy as np
from django.db.models import Count, F, QuerySet, Subquery, Sum

from judge.engine import Phase
from judge.models import CoinBlock, Comparison, Enrolment, Ledger, Round, Score, Season, Window
from judge.statistics.comparison import MIN_ROUNDS, ModelTrial, compare_arms, plan_looks
from judge.statistics.randomisation import Floats
from judge.statistics.task_gaps import CellUnit, compare_tasks
from swarm_web.nodes.models import Node

# The block number of nodes that are in no block; the database's numbers start at 1.
_NO_BLOCK = 0


def compare_after_round(season: Season, *, now: datetime) -> None:
    """Compare the arms, unless claims of the newest look are already stored.

    A look is an evaluation of the test while the season runs (`plan_looks`). Before the first
    planned look, the arms are compared after each round, without a test.
    """
    looks = _reached_looks(season)
    if looks and Comparison.objects.filter(season=season, claim__look=looks[-1]).exists():
        return
    compare_season(season, now=now)


def compare_season(season: Season, *, now: datetime) -> None:
    """Store the judge's claims about swarm and isolated nodes of each model, at the newest look.

    They replace earlier claims. If the season has no closed round, earlier claims are deleted and
    none are stored. Every look is recomputed, because rounds that it once included may have become
    void.
    """
    looks = _reached_looks(season)
    if not looks:
        Comparison.objects.filter(season=season).delete()
        return
    by_model = trained_ledgers(season)
    claims = compare_arms(
        read_trials(season, by_model, looks=looks),
        looks=looks,
        trial_rounds=season.trial_rounds,
        seed=season.seed,
    )
    Comparison.objects.filter(season=season).exclude(model__in=list(by_model)).delete()
    for claim in claims:
        gaps = compare_tasks(_cell_units(by_model[claim.model]))
        Comparison.objects.update_or_create(
            season=season,
            model=claim.model,
            defaults={
                "claim": msgspec.to_builtins(claim),
                "tasks": msgspec.to_builtins(gaps),
                "updated_at": now,
            },
        )


def _closed_rounds(season: Season) -> QuerySet[Round]:
    return season.rounds.filter(phase=Phase.CLOSED)


def _reached_looks(season: Season) -> list[int]:
    """Return the looks that the season has reached, each as a number of closed rounds.

    Before the first planned look (`plan_looks`), the list has only the present number of closed
    rounds. Without closed rounds, it is empty.
    """
    closed = _closed_rounds(season).count()
    planned = [look for look in plan_looks(season.trial_rounds) if look <= closed]
    return planned or ([closed] if closed else [])


def trained_ledgers(season: Season) -> dict[str, list[Ledger]]:
    """Return the ledgers of scored nodes by model, without `base` nodes and quarantined nodes."""
    ledgers = Ledger.objects.filter(
        season=season, deviation_rounds__gt=0, node__quarantined=False
    ).exclude(arm=Node.Arm.BASE)
    by_model: defaultdict[str, list[Ledger]] = defaultdict(list)
    fields = ("node", "model", "arm", "tallies", "deviation_rounds")
    for ledger in ledgers.order_by("model", "node_id").only(*fields):
        by_model[ledger.model].append(ledger)
    return dict(by_model)


def _cell_units(ledgers: Sequence[Ledger]) -> list[CellUnit]:
    return [
        CellUnit(ledger.arm, ledger.deviation_rounds, tally["cells"])
        for ledger in ledgers
        if (tally := ledger.tallies.get(Window.SEASON))
    ]


# ---- the data of a test


def read_trials(
    season: Season, by_model: Mapping[str, Sequence[Ledger]], *, looks: Sequence[int]
) -> dict[str, ModelTrial]:
    """Return the trial of each model, with its nodes' results up to each look.

    `by_model` is the result of `trained_ledgers`, and `looks` that of `_reached_looks`.
    """
    data = _read_season(season, looks=looks)
    return {
        model: _make_trial(ledgers, data, looks=len(looks)) for model, ledgers in by_model.items()
    }


@dataclass(frozen=True)
class _SeasonData:
    """A season's data for the comparison of its arms.

    `closed_at` has the closing times of the closed rounds, in order. `enrolled` maps node ids to
    enrolments. `blocks` maps the id of each CoinBlock to the arms of its places, true for swarm.
    `paths` is the result of `_read_paths`, and `earlier` that of `_read_earlier`.
    """

    closed_at: list[datetime]
    enrolled: dict[int, Enrolment]
    blocks: dict[int, list[bool]]
    paths: dict[int, Floats]
    earlier: dict[tuple[int, str], float]


def _read_season(season: Season, *, looks: Sequence[int]) -> _SeasonData:
    """Return a season's data, with results up to each look and results from earlier seasons."""
    closed = list(_closed_rounds(season).order_by("number").values_list("number", "closed_at"))
    blocks = CoinBlock.objects.filter(season=season).values_list("pk", "arms")
    return _SeasonData(
        closed_at=[closed_at for _, closed_at in closed if closed_at],
        enrolled={each.node_id: each for each in Enrolment.objects.filter(season=season)},
        blocks={pk: [arm == Node.Arm.SWARM for arm in arms] for pk, arms in blocks},
        paths=_read_paths(season, [closed[look - 1][0] for look in looks]),
        earlier=_read_earlier(season),
    )


def _read_paths(season: Season, lasts: Sequence[int]) -> dict[int, Floats]:
    """Return sums over each node's rounds up to each look, as arrays [looks, 3] by node id.

    The columns are the sum of the node's deviations (`Score.deviation`), the sum of their squares,
    and the number of rounds with a deviation. `lasts` has, for each look, the number of the last
    round that the look includes.
    """
    paths: defaultdict[int, Floats] = defaultdict(lambda: np.zeros((len(lasts), 3)))
    for look, (before, last) in enumerate(pairwise([-1, *lasts])):
        scores = Score.objects.filter(
            round__season=season,
            round__phase=Phase.CLOSED,
            round__number__gt=before,
            round__number__lte=last,
            deviation__isnull=False,
        )
        sums = scores.values("node").annotate(
            total=Sum("deviation"),
            squares=Sum(F("deviation") * F("deviation")),
            rounds=Count("deviation"),
        )
        for node_id, *added in sums.values_list("node", "total", "squares", "rounds"):
            paths[node_id][look:] += added
    return dict(paths)


def _read_earlier(season: Season) -> dict[tuple[int, str], float]:
    """Return mean deviations (`Score.deviation`) in earlier seasons, by (node id, model).

    Earlier seasons are those that started before `season`. The nodes are those enrolled in
    `season`. For each node and model, only the newest earlier season with at least MIN_ROUNDS
    deviations is used.
    """
    before = Ledger.objects.filter(
        season__started_at__lt=Subquery(Season.objects.filter(pk=season.pk).values("started_at")),
        deviation_rounds__gte=MIN_ROUNDS,
        node__enrolments__season=season,
    )
    rows = before.order_by("season__started_at").values_list(
        "node", "model", "deviations", "deviation_rounds"
    )
    return {(node_id, model): total / rounds for node_id, model, total, rounds in rows}


def _make_trial(ledgers: Sequence[Ledger], data: _SeasonData, *, looks: int) -> ModelTrial:
    """Return the trial of one model, given its nodes' ledgers and the number of looks."""
    empty = np.zeros((looks, 3))
    paths = np.stack([data.paths.get(each.node_id, empty) for each in ledgers])
    deviations, squares, rounds = paths.transpose(2, 1, 0)
    means = np.divide(deviations, rounds, out=np.full_like(deviations, np.nan), where=rounds > 0)
    spread = np.maximum(0, squares[-1] - rounds[-1] * np.nan_to_num(means[-1]) ** 2)
    blocks, places = dict(data.blocks), []
    unblocked = blocks.setdefault(_NO_BLOCK, [])
    for ledger in ledgers:
        enrolment = data.enrolled.get(ledger.node_id)
        if enrolment and enrolment.block_id is not None and enrolment.place is not None:
            places.append((enrolment.block_id, enrolment.place))
        else:
            places.append((_NO_BLOCK, len(unblocked)))
            unblocked.append(ledger.arm == Node.Arm.SWARM)
    return ModelTrial(
        places=places,
        blocks=blocks,
        deviations=means,
        rounds=rounds.astype(np.int64),
        covariates=np.array([_read_covariates(ledger, data) for ledger in ledgers]),
        noise=spread / np.maximum(1, rounds[-1] - 1),
    )


def _read_covariates(ledger: Ledger, data: _SeasonData) -> tuple[float, float]:
    """Return two covariates of a node; an unknown one is 0.

    The first is how many rounds of the season had closed when the node was enrolled. The second is
    the node's mean `Score.deviation` in an earlier season (`_read_earlier`).
    """
    enrolment = data.enrolled.get(ledger.node_id)
    joined = bisect_right(data.closed_at, enrolment.created_at) if enrolment else 0
    return float(joined), data.earlier.get((ledger.node_id, ledger.model), 0.0)
