"""A run through a coordinator requires the season that the experiment defines.

The run itself is tested in `tests/swarm/test_lab_through.py`.
"""

import pytest
from msgspec.structs import replace

from node_client.errors import SettingsError
from node_client.lab.config import plan_nodes
from node_client.lab.through import check_season
from tests.node_client.lab.experiments import experiment


def test_season_is_identified_by_its_rules_not_by_its_name() -> None:
    planned = plan_nodes(experiment(), experiment().arms[0])[0].season
    check_season(replace(planned, name="another"), planned=planned)


def test_season_with_other_rules_is_refused() -> None:
    planned = plan_nodes(experiment(), experiment().arms[0])[0].season
    with pytest.raises(SettingsError, match="other tasks or rules"):
        check_season(replace(planned, seed=planned.seed + 1), planned=planned)
