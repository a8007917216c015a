"""The board: memory that a child writes and its parent reads."""

import os
import sys

import pytest

from swarm_tasks.board import MADE, UNMADE, UNSCORED, Board, count_done, open_memory


def test_two_boards_on_one_memory_see_the_same_steps() -> None:
    memory = open_memory()
    one, other = Board(memory), Board(memory)
    os.close(memory)
    one.lay_out([UNMADE, UNSCORED, UNSCORED])
    other.steps[0], other.steps[1] = MADE, 0.25
    other.seconds[1] = 0.5
    assert one.read(3) == [MADE, 0.25, UNSCORED]
    assert one.read_seconds(2)[1] == 0.5
    one.close()
    other.close()


def test_steps_are_counted_up_to_the_first_pending_one() -> None:
    assert count_done([MADE, 0.0, UNSCORED, UNMADE]) == 2
    assert count_done([MADE, 1.0]) == 2
    assert count_done([]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can seal memory")
def test_child_cannot_truncate_the_memory_of_its_parent() -> None:
    memory = open_memory()
    with pytest.raises(PermissionError):
        os.ftruncate(memory, 0)
    os.close(memory)
