"""Threads that send: the worker hands parcels over and goes on, however long a receiver takes.

A worker process that is killed takes with it what its threads had not sent, or had sent and not
told; the deliveries are due again when their lease ends (`services.delivering`).
"""

import logging
from collections.abc import Iterable
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from swarm_web.notifications.models import Failure
from swarm_web.notifications.parcels import Outcome, Parcel

logger = logging.getLogger(__name__)

THREADS = 32
# Handed over and not yet told of: each thread's current parcel, and some that it takes next.
MOST_PARCELS = 96


class Courier:
    """Sends parcels by threads, which start with the first parcels and end with the process."""

    def __init__(self, *, threads: int = THREADS, most: int = MOST_PARCELS) -> None:
        self._threads, self._most = threads, most
        self._parcels, self._outcomes = SimpleQueue[Parcel](), SimpleQueue[Outcome]()
        self._out, self._started = 0, 0
        self._lock = Lock()

    def room(self) -> int:
        """Return how many parcels it takes now."""
        return self._most - self._out

    def take(self, parcels: Iterable[Parcel]) -> None:
        """Take parcels to send, at most as many as there is room for."""
        with self._lock:
            for parcel in parcels:
                self._out += 1
                self._parcels.put(parcel)
            while self._started < min(self._threads, self._out):
                self._started += 1
                Thread(target=self._send_for_ever, daemon=True).start()

    def collect(self, *, wait_s: float = 0.0) -> list[Outcome]:
        """Return how parcels ended since the last call; wait for the first if any is out."""
        with self._lock:
            outcomes: list[Outcome] = []
            while len(outcomes) < self._out:
                try:
                    outcomes.append(self._outcomes.get(timeout=0.0 if outcomes else wait_s))
                except Empty:
                    break
            self._out -= len(outcomes)
        return outcomes

    def _send_for_ever(self) -> None:
        while True:
            parcel = self._parcels.get()
            try:
                outcome = parcel.send()
            except Exception:
                # The edge of the thread: a slot that never comes back would be worse.
                logger.exception("could not send %s", parcel.delivery)
                outcome = parcel.end(Failure.INTERNAL)
            self._outcomes.put(outcome)


@cache
def process_courier() -> Courier:
    """Return the courier of this process."""
    return Courier()
