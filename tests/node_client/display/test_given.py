"""What the panel shows about rollouts that a node does not share."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from node_client.display.rows import list_rows
from node_client.site import Site
from swarm_protocol.messages import Arm
from tests.node_client.fakes import toy_season
from tests.node_client.shell_fakes import empty_view


@pytest.mark.parametrize(
    ("arm", "publishes", "shown"),
    [
        ("isolated", False, "nothing: in this season isolated nodes keep their rollouts"),
        ("isolated", True, "0 rollouts published"),
        ("swarm", False, "0 rollouts published"),
    ],
)
def test_isolated_node_shows_whether_it_publishes(arm: Arm, publishes: bool, shown: str) -> None:
    season = msgspec.structs.replace(toy_season(), isolated_publish=publishes)
    view = replace(empty_view(), site=Site("https://swarm.example"), arm=arm, season=season)
    rows = dict(list_rows(view, now=datetime.now(UTC)))
    assert rows["given"].plain == shown
