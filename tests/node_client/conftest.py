"""What several tests of the client share."""

from collections.abc import Iterator

import pytest

from swarm_tasks.verifier import Verifier


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """A real verifier; starting its child takes a second, so all tests use the same one."""
    with Verifier() as running:
        yield running
