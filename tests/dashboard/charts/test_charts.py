"""Test the charts of scores."""

from itertools import pairwise

from swarm_record.stats import effective_n, macro_interval
from swarm_web.dashboard.charts.scores import ScorePoint, draw_leaders, draw_node, pool_rounds


def make_points(*, node: str = "amber", arm: str = "swarm", rounds: int = 8) -> list[ScorePoint]:
    return [
        ScorePoint(node=node, arm=arm, round=r, cells={"gcd": (min(r, 16), 16)})
        for r in range(1, rounds + 1)
    ]


def test_line_pools_the_cells_of_the_last_rounds() -> None:
    pooled = pool_rounds(make_points(), width=5)
    last = pooled[-1]
    assert (last.round, last.n, last.share) == (8, 80, (4 + 5 + 6 + 7 + 8) / 80)
    assert last.interval == macro_interval(30 / 80, 80)


def test_pooled_score_weights_datasets_equally() -> None:
    rounds = [{"gcd": (9, 9), "products": (0, 1)}, {"gcd": (9, 9), "products": (1, 1)}]
    points = [
        ScorePoint(node="amber", arm="swarm", round=i, cells=cells)
        for i, cells in enumerate(rounds)
    ]
    last = pool_rounds(points)[-1]
    assert (last.share, last.n) == (0.75, 20)
    both = {"gcd": (18, 18), "products": (1, 2)}
    assert last.interval == macro_interval(0.75, effective_n(both))


def test_first_points_pool_the_available_rounds() -> None:
    assert [line.n for line in pool_rounds(make_points(rounds=3), width=5)] == [16, 32, 48]


def test_arms_differ_in_colour_and_dash() -> None:
    points = make_points() + make_points(node="bold", arm="isolated")
    figure = draw_leaders(points, order=["amber", "bold"])
    lines = [trace["line"] for trace in figure["data"] if "name" in trace]
    assert [(line["color"], line["dash"]) for line in lines] == [
        ("#0072b2", "solid"),
        ("#d55e00", "dash"),
    ]


def test_labels_at_the_ends_of_lines_do_not_overlap() -> None:
    points = [p for name in "abcde" for p in make_points(node=name)]
    figure = draw_leaders(points, order=list("abcde"))
    top = max(y for trace in figure["data"] for y in trace["y"])
    heights = sorted(label["y"] for label in figure["layout"]["annotations"])
    assert all(b - a > 0.05 * top for a, b in pairwise(heights))


def test_node_is_drawn_as_dots_line_and_band() -> None:
    band, dots, line = draw_node(make_points())["data"]
    assert band["fill"] == "toself"
    assert dots["y"] == [r / 16 for r in range(1, 9)]
    assert line["x"] == list(range(1, 9))


def test_chart_of_a_node_without_rounds_is_empty() -> None:
    assert draw_node([])["data"] == []


def test_ticks_are_at_about_ten_whole_rounds() -> None:
    counts = (1, 5, 11, 16, 700)
    steps = [draw_node(make_points(rounds=n))["layout"]["xaxis"]["dtick"] for n in counts]
    assert steps == [1, 1, 1, 2, 100]


def test_many_rounds_are_pooled_into_disjoint_points() -> None:
    points = make_points(rounds=16)
    pooled = pool_rounds(points, width=8, step=8)
    assert [(line.round, line.n) for line in pooled] == [(8, 128), (16, 128)]
    _band, line = draw_node(points, step=8)["data"]
    assert line["x"] == [8, 16]


def test_node_is_drawn_with_its_base_model() -> None:
    *_, line, base = draw_node(make_points(), base=make_points(node="bare", arm="base"))["data"]
    assert (line["line"]["dash"], base["line"]["dash"]) == ("solid", "dot")
    assert base["name"] == "untrained"
