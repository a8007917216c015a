"""Batches are split into requests and loads, and every text gets its own score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_protocol.messages import MAX_COMPLETION_CHARS
from swarm_tasks.batches import Batch, Progress, lay_out_steps, split_batch
from swarm_tasks.board import MADE, MAX_STEPS, TIMEOUT, UNMADE, UNSCORED
from tests.tasks.specs import make_spec

LONG = "x" * (MAX_COMPLETION_CHARS + 1)
group_sizes = st.lists(st.integers(0, 2 * MAX_STEPS + 2), max_size=5)


def batch_of(sizes: list[int]) -> Batch:
    """Return groups of texts; each text is a number, which will be its score."""
    groups = []
    worth = 0
    for place, size in enumerate(sizes):
        groups.append((make_spec(index=place), [str(worth + i) for i in range(size)]))
        worth += size
    return groups


def serve(progress: Progress, *, lost_after: list[int]) -> None:
    """Answer requests like a child that is lost after the given number of steps of each."""
    losses = iter(lost_after)
    while jobs := progress.take_jobs():
        steps = [(worth, 0.5) for job in jobs for worth in (MADE, *map(float, job.texts))]
        assert 1 < len(steps) <= MAX_STEPS
        assert len(steps) == len(lay_out_steps(jobs))
        progress.note(steps[: next(losses, len(steps))])


@given(sizes=group_sizes, lost_after=st.lists(st.integers(2, MAX_STEPS), max_size=10))
def test_every_text_gets_its_own_score_however_often_the_child_is_lost(
    sizes: list[int], lost_after: list[int]
) -> None:
    batch = batch_of(sizes)
    progress = Progress(batch)
    serve(progress, lost_after=lost_after)
    assert progress.result() == [[(float(text), 0.5) for text in texts] for _, texts in batch]


def test_small_groups_share_a_request() -> None:
    progress = Progress(batch_of([1] * 16))
    assert len(progress.take_jobs()) == 16


def test_timeout_is_recorded_for_its_text_and_the_rest_is_requested_again() -> None:
    progress = Progress(batch_of([3]))
    progress.take_jobs()
    progress.note([(MADE, 0.0), (0.0, 0.1), (TIMEOUT, 5.0)])
    (rest,) = progress.take_jobs()
    assert rest.texts == ["2"]
    progress.note([(MADE, 0.0), (1.0, 0.2)])
    assert progress.result() == [[(0.0, 0.1), (TIMEOUT, 5.0), (1.0, 0.2)]]


def test_unreached_texts_are_unscored() -> None:
    progress = Progress([(make_spec(), ["0", LONG, "1"])])
    progress.take_jobs()
    progress.note([(MADE, 0.0), (0.0, 0.1)])
    assert progress.result() == [[(0.0, 0.1), (0.0, 0.0), (UNSCORED, 0.0)]]


def test_texts_over_the_length_limit_score_zero_and_are_not_sent() -> None:
    progress = Progress([(make_spec(), [LONG, "0.5", LONG]), (make_spec(), [LONG])])
    (job,) = progress.take_jobs()
    assert job.texts == ["0.5"]
    progress.note([(MADE, 0.0), (0.5, 0.1)])
    assert [[worth for worth, _ in group] for group in progress.result()] == [[0, 0.5, 0], [0]]


def test_first_step_of_every_job_makes_its_task() -> None:
    progress = Progress(batch_of([1, 2]))
    steps = lay_out_steps(progress.take_jobs())
    assert [step == UNMADE for step in steps] == [True, False, True, False, False]


@pytest.mark.slow
@given(sizes=group_sizes, most=st.integers(1, 2000))
def test_loads_are_the_batch_in_order_and_within_the_size_limit(
    sizes: list[int], most: int
) -> None:
    batch = batch_of(sizes)
    again: list[list[str]] = [[] for _ in batch]
    for load in split_batch(batch, most=most):
        assert load
        assert sum(len(texts) for _, (_, texts) in load) <= most
        for place, (spec, texts) in load:
            assert spec == batch[place][0]
            again[place] += texts
    assert again == [texts for _, texts in batch]


@given(sizes=group_sizes, most=st.integers(1, 2000))
def test_group_that_fits_into_a_load_is_not_split(sizes: list[int], most: int) -> None:
    places = [place for load in split_batch(batch_of(sizes), most=most) for place, _ in load]
    for place, size in enumerate(sizes):
        assert places.count(place) == max(1, -(-size // most))
