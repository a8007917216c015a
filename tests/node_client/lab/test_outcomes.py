from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from node_client.lab.outcomes import (
    drawdown,
    first_round_above,
    measure_held_out,
    spread,
    take_off,
    wobble,
)
from node_client.lab.results import RunData, read_results
from tests.node_client.lab.folders import LabFolder


def run_with(folder: Path, held_out: dict[int, list[float]]) -> RunData:
    """Return a run in which the nodes got these held-out scores after these rounds."""
    lab = LabFolder(folder, seeds=[1])
    for arm in ("8/0", "4/4"):
        lab.add(arm, 1, [0.1, 0.1])
    return replace(
        read_results(folder).arms[1].runs[1],
        held_out_rounds=list(held_out),
        held_out=np.array(list(held_out.values())),
    )


def test_area_is_the_mean_height_of_the_curve(tmp_path: Path) -> None:
    run = run_with(tmp_path, {0: [0.0, 0.2], 10: [0.4, 0.2], 20: [1.0, 0.2]})
    found = measure_held_out(run)
    assert found is not None
    # (0 + .4) / 2 * 10 and (.4 + 1) / 2 * 10, over 20 rounds.
    assert found.area == pytest.approx([0.45, 0.2])
    assert found.final == pytest.approx([1.0, 0.2])


def test_area_weighs_evaluations_by_the_rounds_between_them(tmp_path: Path) -> None:
    run = run_with(tmp_path, {0: [0.0, 0.0], 5: [0.4, 0.4], 20: [0.4, 0.4]})
    found = measure_held_out(run)
    assert found is not None
    assert found.area == pytest.approx([(0.2 * 5 + 0.4 * 15) / 20] * 2)


def test_forgetting_is_the_fall_from_the_smoothed_peak_to_the_end(tmp_path: Path) -> None:
    scores = [0.0, 0.3, 0.6, 0.6, 0.3, 0.0]
    run = run_with(tmp_path, {4 * at: [score, score] for at, score in enumerate(scores)})
    found = measure_held_out(run)
    assert found is not None
    # Means of three: .3, .5, .5, .3.
    assert found.forgetting == pytest.approx(0.2)
    assert found.drawdown == pytest.approx(0.4)


def test_single_evaluation_is_no_curve(tmp_path: Path) -> None:
    assert measure_held_out(run_with(tmp_path, {0: [0.1, 0.1]})) is None


def test_drawdown_is_the_largest_fall_as_a_share_of_the_peak_before_it() -> None:
    assert drawdown(np.array([0.1, 0.4, 0.2, 0.5, 0.4])) == pytest.approx(0.5)
    assert drawdown(np.array([0.1, 0.2, 0.2])) == 0
    assert drawdown(np.zeros(3)) == 0


def test_wobble_is_the_deviation_of_changes_over_the_level() -> None:
    # Changes .2, -.2, .2: their standard deviation is .1886; the mean level is .2.
    assert wobble(np.array([0.1, 0.3, 0.1, 0.3])) == pytest.approx(0.1886 / 0.2, rel=1e-3)
    assert wobble(np.array([0.1, 0.2, 0.3])) == pytest.approx(0)
    assert wobble(np.zeros(3)) == 0


def rewards(*stretches: tuple[int, float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return one node's rewards: for each pair, a number of rounds with this reward."""
    level = np.concatenate([np.full(rounds, reward) for rounds, reward in stretches])
    return level[:, None]


def test_take_off_is_the_round_where_the_average_of_ten_exceeds_the_level() -> None:
    # At round 25 half of the ten rounds are high: .5 is not above .5.
    assert take_off(rewards((20, 0.0), (20, 1.0)), above=0.5) == 26


def test_take_off_after_a_relapse_is_where_the_average_stays_above_the_level() -> None:
    run = rewards((20, 1.0), (20, 0.0), (20, 1.0))
    assert take_off(run, above=0.5) == 46


def test_run_that_ends_below_the_level_has_no_take_off() -> None:
    assert take_off(rewards((20, 1.0), (20, 0.0)), above=0.5) is None


def test_run_that_is_always_above_the_level_takes_off_at_the_first_average() -> None:
    assert take_off(rewards((20, 1.0)), above=0.5) == 10


def test_spread_is_measured_between_nodes() -> None:
    assert spread(np.array([1.0, 3.0])) == pytest.approx(np.sqrt(2))
    assert spread(np.array([1.0])) == 0


def test_run_reaches_a_level_where_the_average_of_three_evaluations_stays_above(
    tmp_path: Path,
) -> None:
    scores = [0.0, 0.9, 0.0, 0.3, 0.6, 0.6]
    run = run_with(tmp_path, {4 * at: [score, score] for at, score in enumerate(scores)})
    # Means of three, of rounds 8, 12, 16 and 20: .3, .4, .3, .5.
    assert first_round_above(run, 0.3) == 8
    assert first_round_above(run, 0.35) == 20
    assert first_round_above(run, 0.6) is None
