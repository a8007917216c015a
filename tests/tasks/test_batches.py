"""Batches are split into requests and loads, and every text gets its own score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_protocol.messages import MAX_COMPLETION_CHARS
from swarm_tasks.batches import Batch, BatchProgress, pending_steps, split_batch
from swarm_tasks.step_board import GENERATED, MAX_STEPS, NOT_GENERATED, NOT_SCORED, TIMEOUT
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


def serve(progress: BatchProgress, *, lost_after: list[int]) -> None:
    """Answer requests like a child that is lost after the given number of steps of each."""
    losses = iter(lost_after)
    while jobs := progress.next_jobs():
        steps = [(worth, 0.5) for job in jobs for worth in (GENERATED, *map(float, job.texts))]
        assert 1 < len(steps) <= MAX_STEPS
        assert len(steps) == len(pending_steps(jobs))
        progress.record(steps[: next(losses, len(steps))])


@given(sizes=group_sizes, lost_after=st.lists(st.integers(2, MAX_STEPS), max_size=10))
def test_every_text_gets_its_own_score_however_often_the_child_is_lost(
    sizes: list[int], lost_after: list[int]
) -> None:
    batch = batch_of(sizes)
    progress = BatchProgress(batch)
    serve(progress, lost_after=lost_after)
    assert progress.results() == [[(float(text), 0.5) for text in texts] for _, texts in batch]


def test_small_groups_share_a_request() -> None:
    progress = BatchProgress(batch_of([1] * 16))
    assert len(progress.next_jobs()) == 16


def test_timeout_is_recorded_for_its_text_and_the_rest_is_requested_again() -> None:
    progress = BatchProgress(batch_of([3]))
    progress.next_jobs()
    progress.record([(GENERATED, 0.0), (0.0, 0.1), (TIMEOUT, 5.0)])
    (rest,) = progress.next_jobs()
    assert rest.texts == ["2"]
    progress.record([(GENERATED, 0.0), (1.0, 0.2)])
    assert progress.results() == [[(0.0, 0.1), (TIMEOUT, 5.0), (1.0, 0.2)]]


def test_unreached_texts_are_unscored() -> None:
    progress = BatchProgress([(make_spec(), ["0", LONG, "1"])])
    progress.next_jobs()
    progress.record([(GENERATED, 0.0), (0.0, 0.1)])
    assert progress.results() == [[(0.0, 0.1), (0.0, 0.0), (NOT_SCORED, 0.0)]]


def test_texts_over_the_length_limit_score_zero_and_are_not_sent() -> None:
    progress = BatchProgress([(make_spec(), [LONG, "0.5", LONG]), (make_spec(), [LONG])])
    (job,) = progress.next_jobs()
    assert job.texts == ["0.5"]
    progress.record([(GENERATED, 0.0), (0.5, 0.1)])
    assert [[worth for worth, _ in group] for group in progress.results()] == [[0, 0.5, 0], [0]]


def test_first_step_of_every_job_makes_its_task() -> None:
    progress = BatchProgress(batch_of([1, 2]))
    steps = pending_steps(progress.next_jobs())
    assert [step == NOT_GENERATED for step in steps] == [True, False, True, False, False]


@pytest.mark.slow
@given(sizes=group_sizes, max_texts=st.integers(1, 2000))
def test_loads_are_the_batch_in_order_and_within_the_size_limit(
    sizes: list[int], max_texts: int
) -> None:
    batch = batch_of(sizes)
    again: list[list[str]] = [[] for _ in batch]
    for chunk in split_batch(batch, max_texts=max_texts):
        assert chunk
        assert sum(len(texts) for _, (_, texts) in chunk) <= max_texts
        for place, (spec, texts) in chunk:
            assert spec == batch[place][0]
            again[place] += texts
    assert again == [texts for _, texts in batch]


@given(sizes=group_sizes, max_texts=st.integers(1, 2000))
def test_group_that_fits_into_a_load_is_not_split(sizes: list[int], max_texts: int) -> None:
    places = [
        place for chunk in split_batch(batch_of(sizes), max_texts=max_texts) for place, _ in chunk
    ]
    for place, size in enumerate(sizes):
        assert places.count(place) == max(1, -(-size // max_texts))
