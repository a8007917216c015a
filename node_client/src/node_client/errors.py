"""Problems that a participant can do something about.

NodeError                  what happened and why; `fix` says what to do
  ModelUnavailableError    a model could not be had or used
  CheckpointError          a checkpoint does not belong to this run
  SettingsError            an option, a file or the environment holds something unusable
  StateLockedError         another client is using the same state folder
  UncheckableError         a round's results could be neither confirmed nor refuted
  MemoryExhaustedError     the model does not fit into memory with what it is to do
  UpgradeDueError          the node ends to let its service install a newer client
  NotACoordinatorError     what answers at an address is something else
  CoordinatorRefusedError  the coordinator will not have this node, so trying again is no use
"""

from typing import Any

INTERRUPTED = 130  # what a shell reports for a program that SIGINT ended
USE_WSL = (
    "Run swarm-node in WSL, Windows' own Linux: https://learn.microsoft.com/windows/wsl/install."
)


class NodeError(Exception):
    """The client cannot go on: `message` says what happened and why, `fix` what helps."""

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it come whole out of a worker process: by default it would lose its `fix`."""
        return _restore, (type(self), self.args, self.__dict__)


class ModelUnavailableError(NodeError):
    """A model could not be found, downloaded, read or used."""


class CheckpointError(NodeError):
    """A checkpoint was found, but it does not belong to this run."""


class SettingsError(NodeError):
    """A setting is missing or cannot be used."""


class StateLockedError(NodeError):
    """Another client is running with the same state folder."""


class UncheckableError(NodeError):
    """A round could not be checked, which says nothing about whether its results are right."""


class MemoryExhaustedError(NodeError):
    """Memory runs out even with the least that can go through a model at once."""


class UpgradeDueError(NodeError):
    """The node ended so that a newer client can be installed; `message` says who asks for it."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, fix="`swarm-node service` installs a newer client now, and starts it."
        )


class NotACoordinatorError(NodeError):
    """Something answers at the address, but no coordinator: trying again is no use."""


class CoordinatorRefusedError(NodeError):
    """The coordinator refused this node for good; `code` is the protocol's name of the reason."""

    def __init__(self, message: str, *, fix: str, code: str) -> None:
        super().__init__(message, fix=fix)
        self.code = code


def _restore(kind: type[NodeError], args: tuple[Any, ...], state: dict[str, Any]) -> NodeError:
    problem = kind.__new__(kind, *args)
    problem.__dict__.update(state)
    return problem
