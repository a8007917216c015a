"""Threads of workers, ticks and nodes that race with each other."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection

from judge.models import Round
from judge.services.grading import grade_batch
from tests.judge.toys import Site, ToyVerifier
from tests.processes import eventually

PATIENCE_S = 20
Result = TypeVar("Result")


class Crew:
    """Threads with one database connection each."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def start(self, work: Callable[[], Result]) -> Future[Result]:
        def work_and_disconnect() -> Result:
            try:
                set_lock_timeout()
                return work()
            finally:
                connection.close()

        return self._pool.submit(work_and_disconnect)

    def run_concurrently(self, work: Callable[[], Result], *, times: int) -> list[Result]:
        """Run the same work several times concurrently."""
        start = threading.Barrier(times)

        def work_together() -> Result:
            start.wait(PATIENCE_S)
            return work()

        started = [self.start(work_together) for _ in range(times)]
        return [future.result(PATIENCE_S) for future in started]


def set_lock_timeout() -> None:
    """Let this connection fail instead of waiting forever for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE_S}s'")


class SlowVerifier(ToyVerifier):
    """A verifier that blocks during grading until `may_continue` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.busy, self.may_continue = threading.Event(), threading.Event()
        self.backend: int | None = None
        self.on_grading = self._wait

    def _wait(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (self.backend,) = cursor.fetchone()
        self.busy.set()
        assert self.may_continue.wait(PATIENCE_S)


@contextmanager
def busy_grader(crew: Crew) -> Iterator[tuple[SlowVerifier, Future[int]]]:
    """Start a grader and wait until it has claimed answers and is grading them."""
    verifier = SlowVerifier()
    grading = crew.start(lambda: grade_batch(verifier=verifier))
    try:
        assert verifier.busy.wait(PATIENCE_S)
        yield verifier, grading
    finally:
        verifier.may_continue.set()


def wait_for_blocked_lock() -> None:
    eventually(is_lock_blocked, within_s=PATIENCE_S, what="a transaction waits for a lock")


def is_lock_blocked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def seated_round(site: Site, *names: str) -> Round:
    """Return an open round whose questions these nodes have requested."""
    site.join(*(name for name in names if name not in site.nodes))
    judge_round = site.open(*names)
    site.sit(judge_round, *names)
    return judge_round
