"""Worked solutions: every step can be followed, and slips are noticed as often as requested."""

import random
import re
from dataclasses import replace

import pytest

from node_client.learning.reflection import find_patterns
from node_client.model.demo.teacher import WritingHabits, read_terms, work_through

SUM = "State the final answer to the following arithmetic problem: 7 + 4 - 12 ="
CAREFUL = WritingHabits(worked=1, slips=0, noticed=1, doubted=0, another_way=0)


def written(habits: WritingHabits, *, question: str = SUM) -> list[tuple[str, int]]:
    """Return two hundred solutions with their answers."""
    rng = random.Random(3)
    return [work_through(question, habits, rng=rng) for _ in range(200)]


def steps_of(working: str) -> list[tuple[int, int, int]]:
    """Return each step as its first number, what is added, and its result."""
    found = re.findall(r"(-?\d+) ([+-]) (\d+) = (-?\d+), ", working)
    return [(int(a), int(sign + b), int(c)) for a, sign, b, c in found]


def test_sum_is_worked_out_from_left_to_right() -> None:
    assert set(written(CAREFUL)) == {("7 + 4 = 11, 11 - 12 = -1, ", -1)}


def test_all_terms_may_be_negative() -> None:
    assert read_terms("problem: -7 - 4 + 30 =") == [-7, -4, 30]


def test_question_without_a_sum_is_refused() -> None:
    with pytest.raises(ValueError, match="no sum"):
        read_terms("Spell this word backward (example: sun -> nus): gone")


def test_answer_without_working_is_right() -> None:
    assert set(written(replace(CAREFUL, worked=0, slips=1))) == {("", -1)}


def test_noticed_slip_is_corrected_immediately() -> None:
    for working, answer in written(replace(CAREFUL, slips=1)):
        wrong, right, wrong_again, right_again = steps_of(working)
        assert wrong[2] != 11
        assert (right, right_again) == ((7, 4, 11), (11, -12, -1))
        assert wrong_again[2] != -1
        assert answer == -1


def test_unnoticed_slip_leads_to_the_answer_that_follows_from_it() -> None:
    for working, answer in written(replace(CAREFUL, slips=1, noticed=0)):
        first, second = steps_of(working)
        assert first[2] != 11
        assert second[:2] == (first[2], -12)
        assert answer == second[2] != sum(second[:2])


def test_doubts_are_written_in_words_that_count_as_reflection() -> None:
    found = [find_patterns(working) for working, _ in written(replace(CAREFUL, doubted=1))]
    assert set().union(*found) == {"hesitation", "recheck"}
    assert all(found)


def test_another_way_uses_another_order_of_the_terms() -> None:
    [(working, answer)] = set(written(replace(CAREFUL, another_way=1)))
    assert find_patterns(working) == {"exploration"}
    assert steps_of(working)[2:] == [(-12, 7, -5), (-5, 4, -1)]
    assert answer == -1


def test_plain_working_contains_no_reflection() -> None:
    assert not any(find_patterns(working) for working, _ in written(CAREFUL))


def test_habits_apply_with_the_requested_frequency() -> None:
    worked = [bool(working) for working, _ in written(replace(CAREFUL, worked=0.3))]
    assert 0.2 < sum(worked) / len(worked) < 0.4
