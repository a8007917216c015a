"""Fixtures for several tests of a running node."""

from pathlib import Path

import pytest

from node_client.settings.config import Settings
from node_client.storage.state import StateDir
from tests.node_client.coordinator import TOKEN


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=StateDir(tmp_path), model="toy", arm="swarm", token=TOKEN)
