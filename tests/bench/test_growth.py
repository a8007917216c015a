"""Test how the soak benchmark detects growth of memory."""

from random import Random

import pytest

from bench.relay.growth import fit_growth

MB = 1_000_000
TIMES = [5.0 * n for n in range(120)]


def noisy(*, mb: float, per_minute: float = 0.0, noise: float = 0.0) -> list[float]:
    """Return ten minutes of readings in bytes."""
    random = Random(7)
    return [(mb + per_minute * at / 60 + random.gauss(0, noise)) * MB for at in TIMES]


def test_slope_of_a_straight_line_is_found() -> None:
    growth = fit_growth(TIMES, noisy(mb=100, per_minute=1))
    assert growth.bytes == pytest.approx(10 * MB)
    assert growth.low == pytest.approx(growth.high)
    assert not growth.is_flat


def test_noise_around_a_constant_is_flat() -> None:
    growth = fit_growth(TIMES, noisy(mb=200, noise=1))
    assert growth.low < 0 < growth.high
    assert growth.is_flat


def test_slow_leak_under_noise_is_growth() -> None:
    assert not fit_growth(TIMES, noisy(mb=200, per_minute=0.5, noise=1)).is_flat


def test_growth_in_the_first_third_is_ignored() -> None:
    filling = [min(200.0, 100 + at) * MB for at in TIMES]
    assert fit_growth(TIMES, filling).is_flat


def test_correlated_readings_give_a_wider_interval_than_independent_ones() -> None:
    steps = [(200 + (n // 10) % 2) * MB for n in range(120)]
    apart = [(200 + n % 2) * MB for n in range(120)]
    together, alone = fit_growth(TIMES, steps), fit_growth(TIMES, apart)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_too_few_readings_are_rejected() -> None:
    with pytest.raises(ValueError, match="3 readings"):
        fit_growth(TIMES[:4], [1.0] * 4)
