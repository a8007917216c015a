"""The estimate counts the training steps that an experiment makes."""

import pytest

from node_client.lab.estimating import estimate
from tests.node_client.lab.experiments import experiment


@pytest.mark.slow
def test_estimate_does_not_count_attackers() -> None:
    honest = {"nodes": 3}
    planned = experiment(
        rounds=5,
        seeds=[1, 2],
        baseline="attacked",
        arms=[
            {"name": "attacked", "groups": [honest, {"nodes": 1, "attack": "poison"}]},
            {"name": "peaceful", "groups": [{"nodes": 2}]},
        ],
    )
    cost = estimate(planned)
    assert cost.nodes == 3
    assert cost.node_steps == 5 * 2 * (3 + 2)
