"""Why there is no question to a task."""

from collections.abc import Iterator
from contextlib import contextmanager

from swarm_protocol.errors import ErrorCode, RefusedError


class UnmadeError(RefusedError):
    """The generator raised or hung at a task: a node that names it cannot have answered it.

    Of a request for many tasks, `place` says which one it was.
    """

    place: int = 0


class UnposedError(Exception):
    """The task at `place` has no question, because of `refusal`."""

    def __init__(self, place: int, refusal: RefusedError) -> None:
        super().__init__(refusal.message)
        self.place = place
        self.refusal = refusal


@contextmanager
def posing(place: int) -> Iterator[None]:
    """Raise UnposedError for the task at `place` where the block refuses it."""
    try:
        yield
    except RefusedError as refusal:
        raise UnposedError(place, refusal) from None


def not_made(problem: Exception, *, place: int = 0) -> RefusedError:
    """Return what a lost child or its reply says about the task that it was making."""
    if isinstance(problem, RefusedError) and problem.code is not ErrorCode.VERIFIER_FAILED:
        return problem
    unmade = UnmadeError(ErrorCode.VERIFIER_FAILED, f"the task could not be made: {problem}")
    unmade.place = place
    return unmade
