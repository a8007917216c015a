"""Rounds' summaries are kept ready: written when a round closes, and anew when they are stale.

A node that is quarantined or released may have been in thousands of rounds of thousands of nodes.
The decision only marks their summaries; beat has them written anew, the newest first.
"""

from collections.abc import Sequence
from dataclasses import asdict

from django.db import transaction

from judge.models import Round, RoundSummary, Score, Season
from judge.summaries import Result, summarise, tally_datasets
from swarm_web.nodes.models import Node


def summarise_season(season: Season) -> None:
    """Store the summaries of all closed rounds of a season, from scores written in bulk."""
    for judge_round in season.rounds.filter(phase=Round.Phase.CLOSED).iterator():
        store_summary(judge_round, list(judge_round.scores.all()))


def store_summary(judge_round: Round, scores: Sequence[Score]) -> None:
    """Store what all scores of a round amount to, in place of what was stored before."""
    quarantined = set(Node.objects.filter(quarantined=True).values_list("pk", flat=True))
    results = [
        Result(
            score.model,
            score.arm,
            score.score,
            bytes(score.answered),
            bytes(score.solved),
            competes=score.node_id not in quarantined,
        )
        for score in scores
        if score.score is not None
    ]
    summary = summarise(results, questions=judge_round.questions.count())
    competing = [score for score in scores if score.node_id not in quarantined]
    RoundSummary.objects.update_or_create(
        round=judge_round,
        defaults={
            "seats": len(scores),
            "datasets": tally_datasets((score.arm, score.cells) for score in competing),
            "stale": False,
            **asdict(summary),
        },
    )


def mark_stale(node: Node) -> None:
    """Note that the summaries of a node's rounds are to be written anew; for use in a transaction.

    The transaction holds the locks of the standings that it wants: whoever has one may want a
    round's.
    """
    # A round that closes at this moment has seen the old state: its summary is there when it lets
    # us go on. One that closes later waits for us and sees the new state.
    unfinished = Round.objects.filter(phase__in=[Round.Phase.OPEN, Round.Phase.SCORING])
    list(unfinished.select_for_update(no_key=True).values_list("pk"))
    RoundSummary.objects.filter(round__scores__node=node).update(stale=True)


def renew_stale_summary() -> bool:
    """Write the newest stale summary anew; tell whether there was one that nobody works on."""
    with transaction.atomic():
        stale = RoundSummary.objects.filter(stale=True).select_related("round")
        free = stale.select_for_update(of=("self",), skip_locked=True)
        found = free.order_by("-round_id").first()
        if found is None:
            return False
        store_summary(found.round, list(found.round.scores.all()))
    return True
