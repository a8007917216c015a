"""The client's errors that a participant can act on.

NodeError                  what happened and why; `fix` says what to do
  ModelUnavailableError    a model could not be loaded or used
  CheckpointError          a checkpoint is missing, damaged, or of another model or client version
  SettingsError            an option, a file or the environment holds something unusable
  StateLockedError         another client is using the same state folder
  UncheckableError         results of a round or season could be neither confirmed nor refuted
  MemoryExhaustedError     the model, its smallest batch or an optimizer step is too large
  UpgradeDueError          the node ends so that its service installs a newer client
  NotACoordinatorError     another server answers at the address
  CoordinatorRefusedError  the coordinator refused this node permanently, or issued no token
"""

from typing import Any

INTERRUPTED = 130  # what a shell reports for a program that SIGINT ended
USE_WSL = (
    "Run swarm-node in WSL, Windows' own Linux: https://learn.microsoft.com/windows/wsl/install."
)


class NodeError(Exception):
    """The client cannot continue: `message` says what happened and why, `fix` what to do.

    `code` is that of the refusal if the coordinator refused the node (`CoordinatorRefusedError`),
    otherwise `error`.
    """

    code = "error"

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling from a worker process; the default would omit the argument `fix`."""
        return _restore, (type(self), self.args, self.__dict__)


class ModelUnavailableError(NodeError):
    """A model could not be found, downloaded, read or used."""


class CheckpointError(NodeError):
    """A checkpoint is missing, damaged, or of another model or client version."""


class SettingsError(NodeError):
    """A setting is missing or cannot be used."""


class StateLockedError(NodeError):
    """Another client is running with the same state folder."""


class UncheckableError(NodeError):
    """A round or season could not be checked, so its results are neither confirmed nor refuted."""


class MemoryExhaustedError(NodeError):
    """The model, its smallest possible batch or an optimizer step does not fit into memory."""


class UpgradeDueError(NodeError):
    """The node ended so that a newer client can be installed; `message` gives the reason."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, fix="`swarm-node service` installs a newer client now, and starts it."
        )


class NotACoordinatorError(NodeError):
    """A server that is not a coordinator answers at the address."""


class CoordinatorRefusedError(NodeError):
    """The coordinator refused this node permanently, or did not issue a token for it.

    `code` is the protocol's error code, or one of the client's own codes: `arm.changed`, or `join.`
    followed by the error of the device flow.
    """

    def __init__(self, message: str, *, fix: str, code: str) -> None:
        super().__init__(message, fix=fix)
        self.code = code


def _restore(kind: type[NodeError], args: tuple[Any, ...], state: dict[str, Any]) -> NodeError:
    problem = kind.__new__(kind, *args)
    problem.__dict__.update(state)
    return problem
