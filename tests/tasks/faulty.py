"""Replace the real verifier child by a faulty one, which starts in a fifth of the time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swarm_tasks import keeper as keeper_module
from swarm_tasks.process import ChildProcess
from swarm_tasks.verifier import Verifier

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def faulty_children(module: str = "tests.tasks.faulty_child") -> Iterator[None]:
    """Run `module` instead of the real child."""

    def start(_: str, *arguments: str) -> ChildProcess:
        return ChildProcess(module, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        # Both paths, so that the child runs this checkout even if another one is installed.
        patch.setenv("PYTHONPATH", f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'node_client' / 'src'}")
        patch.setattr(keeper_module, "ChildProcess", start)
        yield


@contextmanager
def faulty_verifier(*, deadline_s: float = 5.0) -> Iterator[Verifier]:
    """Yield a verifier whose child obeys a text: it hangs, dies, waits or evaluates the answer."""
    with faulty_children(), Verifier(deadline_s=deadline_s) as verifier:
        yield verifier


def child_pid(verifier: Verifier) -> int:
    """Return the process id of the verifier's child, which is started if it is not running."""
    return verifier._keeper.child.pid
