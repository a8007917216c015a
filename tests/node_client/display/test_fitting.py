"""The panel in terminals of all sizes: what is always shown, and what is dropped first."""

from itertools import pairwise

import pytest
from rich.cells import cell_len

from tests.node_client.display.snapshots import (
    SITUATIONS,
    SIZES,
    after_many_rounds,
    draw,
    file_of,
    training_with_a_problem,
)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_panel_matches_its_snapshot(situation: str, width: int, height: int) -> None:
    drawn = draw(SITUATIONS[situation](), width=width, height=height)
    assert drawn == file_of(situation, width=width, height=height).read_text(encoding="utf-8")


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("height", [3, 8, 12, 18, 24, 40])
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_panel_fits_every_terminal_with_complete_borders(
    situation: str, width: int, height: int
) -> None:
    lines = draw(SITUATIONS[situation](), width=width, height=height).splitlines()
    assert len(lines) <= height
    assert {cell_len(line) for line in lines} == {width}
    assert lines[-1].startswith("╰")


@pytest.mark.parametrize("height", [8, 12, 16, 24, 50])
def test_health_notice_and_problem_are_shown_at_any_height(height: int) -> None:
    shown = draw(training_with_a_problem(), width=80, height=height)
    assert "✕ needs attention" in shown
    assert "notice    10:00:00 UTC: The season sums has begun." in shown
    assert "problem   11:58:50 UTC checkpoint: No checkpoint was saved" in shown


def test_least_important_parts_are_dropped_first() -> None:
    present: list[set[str]] = []
    for height in (60, 24, 19, 17, 12):
        shown = draw(after_many_rounds(), width=80, height=height)
        words = ("asked  ", "saved  ", "▁▁", "given", "training", "round")
        present.append({word for word in words if word in shown})
    assert all(smaller <= larger for larger, smaller in pairwise(present))
    assert "asked  " in present[0]
    assert "asked  " not in present[1]
    assert "saved  " not in present[2]
    assert "▁▁" not in present[3]
    assert {"round", "training"} <= present[4]


def test_truncated_text_is_marked() -> None:
    assert "…" not in draw(after_many_rounds(), width=80, height=60)
    assert "by others 1,304 times · 8 dropped unsent" in draw(
        after_many_rounds(), width=80, height=24
    )
    assert "times · used…" in draw(after_many_rounds(), width=80, height=15)
