"""Test the chart of the arms over rounds: pooled means, with bands for several nodes."""

import pytest
from scipy.stats import t

from swarm_web.dashboard.charts.arms import ArmPoint, draw_arms, pool_arm


def make_points(mean: float, *, nodes: int = 4, rounds: int = 6) -> list[ArmPoint]:
    return [ArmPoint(r, nodes, mean + r / 64, 0.04) for r in range(1, rounds + 1)]


def test_mean_is_pooled_over_the_last_rounds_with_a_t_interval() -> None:
    last = pool_arm(make_points(0.25))[-1]
    assert (last.round, last.nodes, last.mean) == (6, 4, 0.25 + 4 / 64)
    half = t.ppf(0.975, 3) * (0.04 / 4) ** 0.5
    assert last.interval == pytest.approx((max(0.0, last.mean - half), last.mean + half))


def test_single_node_has_no_interval_and_no_band() -> None:
    arms = {"base": pool_arm(make_points(0.5, nodes=1))}
    assert arms["base"][-1].interval is None
    (line,) = draw_arms(arms)["data"]
    assert (line["name"], line["line"]["dash"]) == ("untrained", "dot")


def test_each_arm_has_its_own_colour_and_dash() -> None:
    arms = {arm: pool_arm(make_points(0.5)) for arm in ("isolated", "swarm")}
    *bands, swarm, isolated = draw_arms(arms)["data"]
    assert [band["fill"] for band in bands] == ["toself", "toself"]
    assert (swarm["line"]["color"], swarm["line"]["dash"]) == ("#0072b2", "solid")
    assert (isolated["line"]["color"], isolated["line"]["dash"]) == ("#d55e00", "dash")


def test_chart_without_rounds_is_empty() -> None:
    assert draw_arms({})["data"] == []
