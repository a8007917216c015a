"""A season's rules become a round's strata."""

from hypothesis import given
from hypothesis import strategies as st

from judge.rules import share_questions
from swarm_protocol.messages import TaskChoice


def tasks_of(weights: list[float]) -> list[TaskChoice]:
    return [
        TaskChoice(dataset=f"d{i}", config={}, weight=weight) for i, weight in enumerate(weights)
    ]


@given(
    st.lists(st.floats(min_value=0.01, max_value=1000), min_size=1, max_size=20),
    st.integers(min_value=1, max_value=256),
)
def test_every_question_is_given_to_a_task(weights: list[float], total: int) -> None:
    counts = share_questions(tasks_of(weights), total)
    assert sum(counts) == total
    assert min(counts) >= 0


@given(
    st.lists(st.floats(min_value=0.01, max_value=1000), min_size=1, max_size=20),
    st.integers(min_value=1, max_value=256),
)
def test_no_task_is_further_than_one_question_from_its_share(
    weights: list[float], total: int
) -> None:
    counts = share_questions(tasks_of(weights), total)
    for weight, count in zip(weights, counts, strict=True):
        assert abs(count - total * weight / sum(weights)) < 1


def test_equal_weights_give_equal_strata() -> None:
    assert share_questions(tasks_of([1, 1, 1, 1]), 16) == [4, 4, 4, 4]
