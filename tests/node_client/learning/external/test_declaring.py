"""Which rollouts a node may declare informative."""

import pytest

from node_client.learning.rollouts import LocalRollout
from swarm_protocol.messages import TaskSpec
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask
from tests.node_client.fakes import group_of

RIGHT, PARTIAL, WRONG = Verdict(1.0, "right"), Verdict(0.4, "partial"), Verdict(0.0, "wrong")
HUNG, BROKEN = Verdict(0.0, "timeout"), Verdict(0.0, "verifier_error")


def rollout_with(*verdicts: Verdict) -> LocalRollout:
    """Return a rollout of a node that gives partial credit."""
    group = group_of(*(verdict.score for verdict in verdicts))
    task = DrawnTask(TaskSpec("gcd", {}, 1, 1, "test"), "1 + 1?")
    return LocalRollout(task=task, answers=[], verdicts=list(verdicts), group=group)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((RIGHT, WRONG), True),
        ((RIGHT, PARTIAL), True),
        ((RIGHT, RIGHT), False),
        ((WRONG, WRONG), False),
        ((PARTIAL, WRONG), False),
        ((RIGHT, WRONG, HUNG), False),
        ((RIGHT, BROKEN), False),
    ],
)
def test_only_rollouts_with_right_and_wrong_answers_are_informative_for_all(
    verdicts: tuple[Verdict, ...], expected: bool
) -> None:
    assert rollout_with(*verdicts).is_informative_for_all is expected
