"""Test the chart of rounds: a band between the quartiles, the median and the best score."""

from django.utils import translation

from swarm_web.dashboard.charts.rounds import RoundSpread, draw_spreads


def test_band_median_and_best_have_the_same_rounds() -> None:
    spreads = [RoundSpread(r, low=0.1, median=r / 8, high=0.4, best=0.6, n=9) for r in (1, 2, 3)]
    band, median, best = draw_spreads(spreads)["data"]
    assert band["x"] == [1, 2, 3, 3, 2, 1]
    assert band["y"] == [0.4, 0.4, 0.4, 0.1, 0.1, 0.1]
    assert (median["x"], median["y"]) == ([1, 2, 3], [0.125, 0.25, 0.375])
    assert median["customdata"][0] == [0.1, 0.4, 9]
    assert best["line"]["dash"] != median["line"]["dash"]


def test_chart_without_rounds_is_empty() -> None:
    assert draw_spreads([])["data"] == []


def test_persian_titles_of_a_chart_are_directionally_isolated() -> None:
    with translation.override("fa"):
        layout = draw_spreads([])["layout"]
    title = layout["yaxis"]["title"]["text"]
    assert title[0] + title[-1] == "\u2068\u2069"
