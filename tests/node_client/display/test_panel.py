import io
from datetime import UTC, datetime

import msgspec
import pytest
from rich.console import Console

from node_client.display.panel import BARS, describe_step, render, sparkline
from node_client.display.view import View
from node_client.swarm.connection import Link
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import RoundInfo, StandingRemark
from tests.node_client.panel_views import full_view, report
from tests.node_client.shell_fakes import empty_view

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def show(view: View, *, width: int = 120, clock: float = 0) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(view, now=NOON, clock=clock))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def first_line(view: View, *, clock: float = 0) -> str:
    return show(view, clock=clock).splitlines()[1].strip("│ ")


def test_the_first_line_says_that_all_is_well() -> None:
    assert first_line(full_view()) == "● connected: training, step 1234 · season sums"


def test_the_first_line_says_when_the_next_attempt_is_and_why_it_is_needed() -> None:
    view = full_view()
    view.link = Link("waiting", "the coordinator closed the connection", retry_at=104.0)
    line = first_line(view, clock=100.0)
    assert line.startswith("● offline, trying again in 4 s: training, step 1234")
    assert "closed the connection" in line


def test_the_first_line_of_a_node_without_coordinator_says_so() -> None:
    assert first_line(empty_view()) == "● alone: no step finished yet, no coordinator"


def test_the_first_line_says_that_there_is_no_season() -> None:
    view = full_view()
    view.season = None
    assert "no season is running" in first_line(view)


def test_the_first_line_says_that_the_node_stops() -> None:
    view = full_view()
    view.stopping = True
    assert "stopping" in first_line(view)


@pytest.mark.parametrize("width", [80, 120])
def test_everything_that_an_owner_wants_to_know_is_there(width: int) -> None:
    text = " ".join(show(full_view(), width=width).replace("│", " ").split())
    for fact in (
        "amber-quiet-heron",
        "https://swarm.example.org/nodes/amber-quiet-heron/",
        "tiny · 180,000 parameters · cpu",
        "informative 50%",
        "2,100 external used",
        "1,200 rollouts shared, 8 dropped unsent",
        "dropped: duplicate 12 · not informative 300",
        "round 7 is open, closes in 1:35 · 32 of 64 answered",
        "judge score 0.345, 95 % interval 0.310–0.380, n = 640 · rank 3–5",
        "What is 3 + 4?",
        "<answer>7</answer> ✓ right",
    ):
        assert fact in text


def test_no_line_is_wider_than_the_terminal() -> None:
    view = full_view()
    view.note_step(report(completion="x" * 5000), view.totals)  # type: ignore[arg-type]
    assert all(len(line) <= 80 for line in show(view, width=80).splitlines())


def test_a_countdown_follows_the_coordinators_clock() -> None:
    view = full_view()
    view.clock_ahead_s = 30
    assert "closes in 1:05" in show(view)


def test_a_round_to_come_is_counted_down_too() -> None:
    view = full_view()
    view.round = RoundInfo(8, "scheduled", "2026-01-01T14:03:00Z", "2026-01-01T15:00:00Z", 64)
    assert "round 8 is scheduled, opens in 2 h 03 min" in show(view)


def test_a_node_that_came_late_is_told_to_wait() -> None:
    view = full_view()
    view.sat_out = 7
    text = show(view)
    assert "waiting for the next round (joined after round 7 opened)" in text
    assert "closes in" not in text
    view.sat_out = 6
    assert "round 7 is open" in show(view)


@pytest.mark.parametrize(
    ("remark", "words"),
    [
        ("too_few", "too few of its questions count"),
        ("base", "an untrained model"),
        ("quarantined", "the operator took this node out"),
    ],
)
def test_a_node_without_a_rank_is_told_why(remark: StandingRemark, words: str) -> None:
    view = full_view()
    assert view.standing is not None
    view.standing = msgspec.structs.replace(view.standing, rank=None, remark=remark)
    text = show(view)
    assert "judge score 0.345" in text
    assert words in text


def test_a_base_node_shows_that_it_is_untrained() -> None:
    view = full_view()
    view.arm, view.report, view.totals = "base", None, None
    assert first_line(view) == "● connected: answering the judge, untrained · season sums"
    assert "its model untouched" in show(view)
    view.season = None
    assert "practising" not in first_line(view)


def test_a_client_that_will_be_refused_soon_is_told_so() -> None:
    view = full_view()
    assert "pip install" not in show(view)
    view.upgrade = "1.4.0\x1b[2J"
    text = show(view)
    assert "clients older than 1.4.0" in text
    assert "pip install --upgrade swarm-node" in text
    assert "\x1b" not in text


def test_the_latest_refusal_is_shown_with_its_remedy() -> None:
    view = full_view()
    refusal = RefusedError(ErrorCode.ANSWER_LATE, "Round 6 closed 3 s ago.")
    view.note_refusal(refusal)
    text = " ".join(show(view).replace("│", " ").split())
    assert "answer.late: Round 6 closed 3 s ago." in text
    assert refusal.fix in text


def test_foreign_text_cannot_steer_the_terminal_or_the_layout() -> None:
    view = full_view()
    view.node = "[red]node[/red]"
    view.note_problem("code", "\x1b[2Jgone", "[blink]fix")
    view.note_step(report(completion="\x1b[31m[bold]red\nline"), view.totals)  # type: ignore[arg-type]
    text = show(view)
    assert "\x1b" not in text
    assert "[red]node[/red]" in text
    assert "[bold]red line" in text
    assert "[blink]fix" in text


def test_the_sparkline_rises_with_the_reward() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == BARS[0] + BARS[4] + BARS[7]
    assert len(sparkline([0.5] * 1000)) == 32
    assert sparkline([]) == ""


def test_a_step_is_one_line_without_a_panel() -> None:
    view = full_view()
    assert describe_step(view) == (
        "step 1234 · training reward 0.793 · informative 50% · 4 local + 4 external · 0.8 s"
    )
