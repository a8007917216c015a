"""The round that tests manipulate."""

import pytest

from swarm_tasks.verifier import Verifier
from tests.node_client.commands.verification.rounds import Published, publish_round


@pytest.fixture(scope="session")
def honest(verifier: Verifier) -> Published:
    """Return a consistent round. Making it takes a moment, so tests that change it use a copy."""
    return publish_round(verifier)


@pytest.fixture
def published(honest: Published) -> Published:
    """Return a copy of the consistent round."""
    return honest.copy()
