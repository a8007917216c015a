"""Why there is no question to a task."""

from collections.abc import Iterator
from contextlib import contextmanager

from swarm_protocol.errors import ErrorCode, RefusedError


class GenerationError(RefusedError):
    """The generator raised or hung at a task: a node that names it cannot have answered it.

    Of a request for many tasks, `position` says which one it was.
    """

    position: int = 0


class NoQuestionError(Exception):
    """The task at `position` has no question, because of `refusal`."""

    def __init__(self, position: int, refusal: RefusedError) -> None:
        super().__init__(refusal.message)
        self.position = position
        self.refusal = refusal


@contextmanager
def errors_at(position: int) -> Iterator[None]:
    """Raise NoQuestionError for the task at `position` where the block refuses it."""
    try:
        yield
    except RefusedError as refusal:
        raise NoQuestionError(position, refusal) from None


def as_generation_error(problem: Exception, *, position: int = 0) -> RefusedError:
    """Return what a lost child or its reply says about the task that it was making."""
    if isinstance(problem, RefusedError) and problem.code is not ErrorCode.VERIFIER_FAILED:
        return problem
    error = GenerationError(
        ErrorCode.VERIFIER_FAILED, f"the task could not be generated: {problem}"
    )
    error.position = position
    return error
