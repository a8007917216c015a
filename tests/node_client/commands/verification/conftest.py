"""The round that tests tamper with."""

import pytest

from swarm_tasks.verifier import Verifier
from tests.node_client.commands.verification.rounds import Published, publish_round


@pytest.fixture(scope="session")
def honest(verifier: Verifier) -> Published:
    """A consistent round; making it takes a moment, so whoever changes it takes a copy."""
    return publish_round(verifier)


@pytest.fixture
def published(honest: Published) -> Published:
    """A consistent round of one's own."""
    return honest.copy()
