"""Threads that send parcels, so that a slow receiver does not block the worker.

If a worker process is killed, the parcels whose outcome it has not recorded are due again when
their lease ends (`services.delivering`).
"""

import logging
from collections.abc import Iterable
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from swarm_web.notifications.models import Failure
from swarm_web.notifications.parcels import DeliveryOutcome, Parcel

logger = logging.getLogger(__name__)

THREADS = 32
# Maximum number of parcels whose outcome has not been collected: one in each thread, others queued.
MAX_PARCELS = 96


class Courier:
    """Sends parcels (`Parcel`) in up to `threads` daemon threads, started by `take` when needed."""

    def __init__(self, *, threads: int = THREADS, max_parcels: int = MAX_PARCELS) -> None:
        self._threads, self._max_parcels = threads, max_parcels
        self._parcels, self._outcomes = SimpleQueue[Parcel](), SimpleQueue[DeliveryOutcome]()
        self._pending, self._started = 0, 0
        self._lock = Lock()

    def capacity(self) -> int:
        """Return how many more parcels `take` accepts now."""
        return self._max_parcels - self._pending

    def take(self, parcels: Iterable[Parcel]) -> None:
        """Queue parcels for sending. The caller must not pass more than `capacity()`."""
        with self._lock:
            for parcel in parcels:
                self._pending += 1
                self._parcels.put(parcel)
            while self._started < min(self._threads, self._pending):
                self._started += 1
                Thread(target=self._send_forever, daemon=True).start()

    def collect(self, *, wait_s: float = 0.0) -> list[DeliveryOutcome]:
        """Return the outcomes since the last call; `capacity` grows by their number.

        If parcels are pending, waits up to `wait_s` seconds for the first outcome.
        """
        with self._lock:
            outcomes: list[DeliveryOutcome] = []
            while len(outcomes) < self._pending:
                try:
                    outcomes.append(self._outcomes.get(timeout=0.0 if outcomes else wait_s))
                except Empty:
                    break
            self._pending -= len(outcomes)
        return outcomes

    def _send_forever(self) -> None:
        while True:
            parcel = self._parcels.get()
            try:
                outcome = parcel.send()
            except Exception:
                # The edge of the thread: without an outcome, the capacity would shrink.
                logger.exception("could not send %s", parcel.delivery)
                outcome = parcel.end(Failure.INTERNAL)
            self._outcomes.put(outcome)


@cache
def process_courier() -> Courier:
    """Return the courier of this process."""
    return Courier()
