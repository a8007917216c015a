"""Test the flow diagram: heights are proportional to the rollouts, and nothing overlaps."""

import re
from itertools import pairwise

from swarm_web.dashboard.charts.flow import BARS_HEIGHT, draw_flow
from swarm_web.relay.selectors.history import Flow

LINKS = [Flow("ann", "bob", 60), Flow("ann", "cat", 30), Flow("bob", "cat", 10)]


def heights(path: str) -> tuple[float, float]:
    """Return the widths of a band at its start and at its end."""
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d", path)]
    # M x0,y0 C (three points, the last x1,y1) L x1,below C (three points, the last x0,below)
    return numbers[-1] - numbers[1], numbers[9] - numbers[7]


def test_givers_and_takers_are_columns_sorted_by_rollouts() -> None:
    picture = draw_flow(LINKS)
    assert [(bar.node, bar.used) for bar in picture.givers] == [("ann", 90), ("bob", 10)]
    assert [(bar.node, bar.used) for bar in picture.takers] == [("bob", 60), ("cat", 40)]
    assert len({bar.x for bar in picture.givers}) == 1


def test_bars_do_not_overlap_and_are_inside_the_picture() -> None:
    picture = draw_flow([Flow(f"g{n}", f"t{n}", 1) for n in range(20)])
    for column in (picture.givers, picture.takers):
        for above, below in pairwise(column):
            assert above.y + above.height < below.y
        assert column[-1].y + column[-1].height <= picture.height


def test_width_of_a_band_is_proportional_to_its_rollouts() -> None:
    for band in draw_flow(LINKS).bands:
        wide = BARS_HEIGHT * band.link.used / 100
        start, end = heights(band.path)
        assert abs(start - wide) < 0.2
        assert abs(end - wide) < 0.2


def test_node_that_gave_and_took_is_in_both_columns() -> None:
    picture = draw_flow(LINKS)
    (gave,) = (bar for bar in picture.givers if bar.node == "bob")
    (took,) = (bar for bar in picture.takers if bar.node == "bob")
    assert gave.x < took.x


def test_diagram_without_links_is_empty() -> None:
    picture = draw_flow([])
    assert not picture.bands
    assert not picture.givers
    assert not picture.takers
