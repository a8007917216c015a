"""How a season's rules become a round's questions; pure."""

from collections.abc import Sequence

from swarm_protocol.messages import TaskChoice


def share_questions(tasks: Sequence[TaskChoice], total: int) -> list[int]:
    """Return how many of `total` questions each task gets, in proportion to its weight.

    Largest remainders get the questions left over, so that every round has the same strata.
    """
    weight = sum(task.weight for task in tasks)
    exact = [total * task.weight / weight for task in tasks]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(tasks)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts
