"""How figures look on pages."""

from datetime import UTC, datetime

import pytest

from swarm_web.dashboard.templatetags.figures import interval, moment, percent, ranks, share, size


@pytest.mark.parametrize(
    ("value", "text"), [(0.3471, ".347"), (1.0, "1.000"), (0.0, ".000"), (None, "–"), ("", "–")]
)
def test_shares(value: float | str | None, text: str) -> None:
    assert share(value) == text


def test_intervals() -> None:
    assert interval((0.311, 0.3844)) == ".311–.384"
    assert interval((None, None)) == "–"


def test_rank_ranges() -> None:
    assert (ranks((3, 5)), ranks((1, 1)), ranks(None)) == ("3–5", "1", "–")


def test_numbers_of_parameters() -> None:
    assert [size(n) for n in (0, 950, 302_144, 494_032_768)] == [
        "–",
        "950",
        "302\u202fk",
        "494\u202fM",
    ]


def test_percents() -> None:
    assert (percent(0.55), percent(None)) == ("55\u202f%", "–")


def test_moments_are_told_in_utc_until_a_script_knows_better() -> None:
    html = str(moment(datetime(2026, 11, 21, 9, 5, 1, tzinfo=UTC)))
    assert 'datetime="2026-11-21T09:05:01+00:00"' in html
    assert 'title="2026-11-21 09:05:01 UTC"' in html
