"""Threads of workers, beats and nodes that get in each other's way."""

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
    """Threads that each work over a database connection of their own."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def start(self, work: Callable[[], Result]) -> Future[Result]:
        def work_and_hang_up() -> Result:
            try:
                lose_patience()
                return work()
            finally:
                connection.close()

        return self._pool.submit(work_and_hang_up)

    def all_at_once(self, work: Callable[[], Result], *, times: int) -> list[Result]:
        """Let several do the same at the same moment."""
        start = threading.Barrier(times)

        def work_together() -> Result:
            start.wait(PATIENCE_S)
            return work()

        started = [self.start(work_together) for _ in range(times)]
        return [future.result(PATIENCE_S) for future in started]


def lose_patience() -> None:
    """Let this connection fail rather than wait for ever, where a lock is not as it should be."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE_S}s'")


class SlowVerifier(ToyVerifier):
    """Waits in the middle of grading until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.busy, self.may_go_on = threading.Event(), threading.Event()
        self.backend: int | None = None
        self.on_grading = self._wait

    def _wait(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (self.backend,) = cursor.fetchone()
        self.busy.set()
        assert self.may_go_on.wait(PATIENCE_S)


@contextmanager
def busy_grader(crew: Crew) -> Iterator[tuple[SlowVerifier, Future[int]]]:
    """Start a grader and wait until it has claimed answers and is grading them."""
    verifier = SlowVerifier()
    grading_them = crew.start(lambda: grade_batch(verifier=verifier))
    try:
        assert verifier.busy.wait(PATIENCE_S)
        yield verifier, grading_them
    finally:
        verifier.may_go_on.set()


def wait_until_somebody_waits() -> None:
    eventually(is_anybody_waiting, within_s=PATIENCE_S, what="somebody waits for a lock")


def is_anybody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def seated_round(site: Site, *names: str) -> Round:
    """Return an open round in which these nodes have taken the questions."""
    site.join(*(name for name in names if name not in site.nodes))
    judge_round = site.open(*names)
    site.sit(judge_round, *names)
    return judge_round
