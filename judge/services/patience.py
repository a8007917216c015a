"""Limits how long the verifier works on one node's answers, so that a slow node delays only itself.

Grading an honest answer takes milliseconds. An answer that takes longer than POSTPONE_AFTER_S is
postponed: it is graded again when no other answer waits, and may then take as long as the
verifier's deadline. Once grading a node's answers in a round has taken POSTPONE_AFTER_S in total,
the node's remaining answers in the round are postponed as well. After BUDGET_S in total, they time
out.
"""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import F, QuerySet

from judge.engine import Phase
from judge.models import Answer, Seat
from judge.selectors.rounds import answers_to_grade

POSTPONE_AFTER_S = 1.0
BUDGET_S = 5.0
# The verdict of a postponed answer until it is graded.
POSTPONED = "put_off"

# A batch of honest answers of a seat costs less than this, which is not worth a write.
_MIN_RECORDED_S = 0.05

# The ids of a round and a node.
SeatKey = tuple[int, int]


def read_costs() -> dict[SeatKey, float]:
    """Return the seconds charged to each seat in rounds that are open or being scored.

    Seats that were charged nothing are left out.
    """
    waiting = Seat.objects.filter(
        round__phase__in=[Phase.OPEN, Phase.SCORING], grading_seconds__gt=0
    )
    rows = waiting.values_list("round_id", "node_id", "grading_seconds")
    return {(round_id, node_id): seconds for round_id, node_id, seconds in rows}


def add_costs(costs: Iterable[tuple[SeatKey, float]]) -> None:
    """Charge each seat the seconds that its answers took; must be called in a transaction.

    A seat whose `costs` add up to less than _MIN_RECORDED_S is not charged.
    """
    sums: defaultdict[SeatKey, float] = defaultdict(float)
    for seat, seconds in costs:
        sums[seat] += seconds
    charged = {seat: seconds for seat, seconds in sums.items() if seconds >= _MIN_RECORDED_S}
    rounds, nodes = {round_id for round_id, _ in charged}, {node_id for _, node_id in charged}
    seats = Seat.objects.filter(round__in=rounds, node__in=nodes)
    # In the order in which `judge.services.answers` locks seats too, so that neither two workers
    # nor a worker and a web process ever deadlock.
    for pk, round_id, node_id in seats.order_by("pk").values_list("pk", "round_id", "node_id"):
        if cost := charged.get((round_id, node_id)):
            Seat.objects.filter(pk=pk).update(grading_seconds=F("grading_seconds") + cost)


def postpone(ids: Iterable[int]) -> int:
    """Postpone the answers with these ids that still wait to be graded; return how many."""
    return answers_to_grade().filter(pk__in=list(ids)).update(verdict=POSTPONED)


def time_out_over_budget(costs: dict[SeatKey, float]) -> int:
    """Time out the postponed answers of seats that were charged BUDGET_S or more.

    Returns how many answers timed out. `costs` is the result of `read_costs`. Must be called in a
    transaction.
    """
    return sum(
        time_out(Answer.objects.filter(question__round=round_id, node=node_id))
        for (round_id, node_id), seconds in costs.items()
        if seconds >= BUDGET_S
    )


def time_out(answers: QuerySet[Answer]) -> int:
    """Give the postponed answers in `answers` the verdict "timeout"; return how many got it.

    Must be called in a transaction. Answers that a worker has locked are skipped, because the
    worker may be waiting for the lock on a round that this transaction holds.
    """
    postponed = answers.filter(score=None, verdict=POSTPONED)
    unlocked = postponed.select_for_update(skip_locked=True, of=("self",)).values_list(
        "pk", flat=True
    )
    chosen = Answer.objects.filter(pk__in=list(unlocked))
    return chosen.update(score=0.0, solved=False, verdict="timeout")
