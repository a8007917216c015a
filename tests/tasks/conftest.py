"""A verifier that a whole test module shares."""

from collections.abc import Iterator

import pytest

from swarm_tasks.verifier import Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared
