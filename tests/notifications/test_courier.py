"""Test the courier: threads send parcels, and the worker does not wait for a receiver."""

import threading
from dataclasses import dataclass, field
from time import monotonic
from uuid import uuid4

from swarm_web.notifications.courier import Courier
from swarm_web.notifications.parcels import DeliveryOutcome, Parcel


@dataclass(frozen=True)
class HeldParcel(Parcel):
    """A parcel whose receiver answers when it is released."""

    released: threading.Event = field(default_factory=threading.Event)

    def send(self) -> DeliveryOutcome:
        assert self.released.wait(timeout=10)
        return self.end()


@dataclass(frozen=True)
class FailingParcel(Parcel):
    """A parcel whose `send` raises an unexpected exception."""

    def send(self) -> DeliveryOutcome:
        raise KeyError("node")


def make_held() -> HeldParcel:
    return HeldParcel(uuid4(), 1)


def test_outcome_is_collected_once() -> None:
    courier, parcel = Courier(), make_held()
    parcel.released.set()
    courier.take([parcel])
    assert courier.collect(wait_s=5) == [parcel.end()]
    assert courier.collect() == []


def test_hanging_receiver_blocks_neither_the_worker_nor_other_parcels() -> None:
    courier, hangs, answers = Courier(threads=2), make_held(), make_held()
    answers.released.set()
    begun = monotonic()
    courier.take([hangs, answers])
    assert courier.collect(wait_s=5) == [answers.end()]
    assert monotonic() - begun < 5
    hangs.released.set()
    assert courier.collect(wait_s=5) == [hangs.end()]


def test_capacity_shrinks_by_the_parcels_in_flight() -> None:
    courier, parcel = Courier(max_parcels=3), make_held()
    courier.take([parcel])
    assert courier.capacity() == 2
    parcel.released.set()
    courier.collect(wait_s=5)
    assert courier.capacity() == 3


def test_number_of_threads_is_limited() -> None:
    before = threading.active_count()
    courier, parcels = Courier(threads=2), [make_held() for _ in range(10)]
    courier.take(parcels)
    assert threading.active_count() <= before + 2
    for parcel in parcels:
        parcel.released.set()


def test_unexpected_exception_is_an_internal_failure_and_ends_no_thread() -> None:
    courier, broken, parcel = Courier(threads=1), FailingParcel(uuid4(), 1), make_held()
    parcel.released.set()
    courier.take([broken, parcel])
    # The second outcome may be ready with the first one, or a moment later.
    outcomes = [*courier.collect(wait_s=1), *courier.collect(wait_s=1)]
    assert outcomes == [broken.end("internal"), parcel.end()]
