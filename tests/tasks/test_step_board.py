"""The board: memory that a child writes and its parent reads."""

import os
import sys

import pytest

from swarm_tasks.step_board import (
    GENERATED,
    NOT_GENERATED,
    NOT_SCORED,
    StepBoard,
    count_done,
    open_memory,
)


def test_two_boards_on_one_memory_see_the_same_steps() -> None:
    memory = open_memory()
    one, other = StepBoard(memory), StepBoard(memory)
    os.close(memory)
    one.write([NOT_GENERATED, NOT_SCORED, NOT_SCORED])
    other.steps[0], other.steps[1] = GENERATED, 0.25
    other.seconds[1] = 0.5
    assert one.read(3) == [GENERATED, 0.25, NOT_SCORED]
    (_, scored), pending = one.read_results(3)
    assert (scored, pending) == ((0.25, 0.5), NOT_SCORED)
    one.close()
    other.close()


def test_steps_are_counted_up_to_the_first_pending_one() -> None:
    assert count_done([GENERATED, 0.0, NOT_SCORED, NOT_GENERATED]) == 2
    assert count_done([GENERATED, 1.0]) == 2
    assert count_done([]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can seal memory")
def test_child_cannot_truncate_the_memory_of_its_parent() -> None:
    memory = open_memory()
    with pytest.raises(PermissionError):
        os.ftruncate(memory, 0)
    os.close(memory)
