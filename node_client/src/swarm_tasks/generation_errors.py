"""Errors for tasks whose question cannot be made."""

from swarm_protocol.errors import ErrorCode, RefusedError


class GenerationError(RefusedError):
    """The generator failed or hung while it made a task, so no node can have answered this task.

    `position` is the task's place (from 0) in a request for several tasks.
    """

    position: int = 0


class NoQuestionError(Exception):
    """The task at `position` (from 0) of a request has no question; `refusal` says why."""

    def __init__(self, position: int, refusal: RefusedError) -> None:
        super().__init__(refusal.message)
        self.position = position
        self.refusal = refusal


def as_generation_error(problem: Exception, *, position: int = 0) -> RefusedError:
    """Return the error to raise when a child failed or was lost while it made a task.

    If `problem` is a RefusedError with a code other than VERIFIER_FAILED, it is returned; otherwise
    the result is a GenerationError with this `position`.
    """
    if isinstance(problem, RefusedError) and problem.code is not ErrorCode.VERIFIER_FAILED:
        return problem
    error = GenerationError(
        ErrorCode.VERIFIER_FAILED, f"the task could not be generated: {problem}"
    )
    error.position = position
    return error
