"""How long the verifier may work on one node's answers to a round, so that it delays only itself.

Grading an honest answer takes milliseconds. One that takes longer than PATIENCE_S is put off, with
all others of its node, until no other answer waits. Then it has the verifier's whole deadline. Once
a node's answers have cost BUDGET_S, those that are left time out unread.
"""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import F, QuerySet

from judge.engine import Phase
from judge.models import Answer, Round, Seat
from judge.selectors.rounds import answers_to_grade

PATIENCE_S = 1.0
BUDGET_S = 5.0
# What stands in place of a verdict meanwhile.
PUT_OFF = "put_off"

# Less is what honest answers cost too, and not worth a write.
_NOTED_S = 0.05

# The ids of a round and a node.
Sitting = tuple[int, int]


def read_costs() -> dict[Sitting, float]:
    """Return the seconds spent on those nodes in unfinished rounds that have cost any."""
    waiting = Seat.objects.filter(
        round__phase__in=[Phase.OPEN, Phase.SCORING], grading_seconds__gt=0
    )
    rows = waiting.values_list("round_id", "node_id", "grading_seconds")
    return {(round_id, node_id): seconds for round_id, node_id, seconds in rows}


def charge(costs: Iterable[tuple[Sitting, float]]) -> None:
    """Add what answers have cost to their nodes' accounts; for use in a transaction."""
    sums: defaultdict[Sitting, float] = defaultdict(float)
    for sitting, seconds in costs:
        sums[sitting] += seconds
    # In order, so that two workers never wait for each other in a circle.
    for (round_id, node_id), seconds in sorted(sums.items()):
        if seconds >= _NOTED_S:
            seat = Seat.objects.filter(round=round_id, node=node_id)
            seat.update(grading_seconds=F("grading_seconds") + seconds)


def put_off(ids: Iterable[int]) -> int:
    """Let these answers wait until there are no others; return how many."""
    return answers_to_grade().filter(pk__in=list(ids)).update(verdict=PUT_OFF)


def time_out_spent(costs: dict[Sitting, float]) -> int:
    """Time out what is left of nodes whose budget is spent; return how many answers."""
    return sum(
        time_out(Answer.objects.filter(question__round=round_id, node=node_id))
        for (round_id, node_id), seconds in costs.items()
        if seconds >= BUDGET_S
    )


def time_out_round(judge_round: Round) -> int:
    """Time out what a round that closes has put off: who sent it may not gain by its being slow."""
    return time_out(Answer.objects.filter(question__round=judge_round))


def time_out_late() -> int:
    """Time out what a worker held while its round closed: there it counts as wrong already."""
    return time_out(Answer.objects.filter(question__round__phase=Phase.CLOSED))


def time_out(answers: QuerySet[Answer]) -> int:
    """Give these answers the verdict that they took too long, if they are put off.

    What a worker holds is passed over: it would wait for the round, and we for it.
    """
    left = answers.filter(score=None, verdict=PUT_OFF)
    free = left.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    chosen = Answer.objects.filter(pk__in=list(free))
    return chosen.update(score=0.0, solved=False, verdict="timeout")
