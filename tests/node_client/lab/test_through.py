"""A run through a coordinator is made in the season that the experiment names, or not at all.

The run itself: `tests/swarm/test_lab_through.py`.
"""

import pytest
from msgspec.structs import replace

from node_client.errors import SettingsError
from node_client.lab.config import plan_nodes
from node_client.lab.through import check_season
from tests.node_client.lab.experiments import experiment


def test_a_season_is_known_by_its_rules_not_by_its_name() -> None:
    planned = plan_nodes(experiment(), experiment().arms[0])[0].season
    check_season(replace(planned, name="another"), planned=planned)


def test_a_season_with_other_rules_is_refused() -> None:
    planned = plan_nodes(experiment(), experiment().arms[0])[0].season
    with pytest.raises(SettingsError, match="other tasks or rules"):
        check_season(replace(planned, seed=planned.seed + 1), planned=planned)
