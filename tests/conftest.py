"""Fixtures that every folder may use."""

import pytest

from swarm_web.catalogues import compile_stale


@pytest.fixture(scope="session", autouse=True)
def catalogues() -> None:
    """Compile the translations, as make does before it starts a site."""
    compile_stale()
