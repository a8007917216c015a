"""Test the courier: threads send parcels, and the worker does not wait for a receiver."""

import threading
from time import monotonic
from uuid import uuid4

from swarm_web.notifications.courier import Courier
from swarm_web.notifications.models import Failure
from swarm_web.notifications.parcels import Parcel, Result


def make_held() -> tuple[Parcel, threading.Event]:
    """Return a parcel whose receiver answers when the event is set."""
    released = threading.Event()

    def wait() -> Result:
        assert released.wait(timeout=10)
        return Failure.NONE, None

    return Parcel(uuid4(), 1, wait), released


def fail() -> Result:
    """Raise an unexpected exception."""
    raise KeyError("node")


def test_outcome_is_collected_once() -> None:
    courier, (parcel, released) = Courier(), make_held()
    released.set()
    courier.take([parcel])
    assert courier.collect(wait_s=5) == [parcel.end()]
    assert courier.collect() == []


def test_hanging_receiver_blocks_neither_the_worker_nor_other_parcels() -> None:
    courier, (hangs, released), (answers, answered) = Courier(threads=2), make_held(), make_held()
    answered.set()
    begun = monotonic()
    courier.take([hangs, answers])
    assert courier.collect(wait_s=5) == [answers.end()]
    assert monotonic() - begun < 5
    released.set()
    assert courier.collect(wait_s=5) == [hangs.end()]


def test_capacity_shrinks_by_the_parcels_in_flight() -> None:
    courier, (parcel, released) = Courier(max_parcels=3), make_held()
    courier.take([parcel])
    assert courier.capacity() == 2
    released.set()
    courier.collect(wait_s=5)
    assert courier.capacity() == 3


def test_number_of_threads_is_limited() -> None:
    before = threading.active_count()
    courier, held = Courier(threads=2), [make_held() for _ in range(10)]
    courier.take(parcel for parcel, _ in held)
    assert threading.active_count() <= before + 2
    for _, released in held:
        released.set()


def test_unexpected_exception_is_an_internal_failure_and_ends_no_thread() -> None:
    courier, broken, (parcel, released) = Courier(threads=1), Parcel(uuid4(), 1, fail), make_held()
    released.set()
    courier.take([broken, parcel])
    # The second outcome may be ready with the first one, or a moment later.
    outcomes = [*courier.collect(wait_s=1), *courier.collect(wait_s=1)]
    assert outcomes == [broken.end("internal"), parcel.end()]
