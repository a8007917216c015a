import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import Console

from node_client.display.events import MemoryUse
from node_client.display.lines import describe_upgrade
from node_client.display.panel import render
from node_client.display.view import NodeView, SavedStep
from node_client.learning.questions.held_out import HeldOutScore
from node_client.storage.state import Lifetime
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import RoundInfo, StandingRemark
from tests.node_client.panel_views import full_view, report, totals

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def show(view: NodeView, *, width: int = 120, clock: float = 0) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(view, now=NOON, clock=clock))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 240])
def test_everything_that_an_owner_wants_to_know_is_there(width: int) -> None:
    text = " ".join(show(full_view(), width=width).replace("│", " ").split())
    for fact in (
        "✓ working amber-quiet-heron is healthy.",
        "amber-quiet-heron · arm swarm",
        "tiny · 180,000 parameters · cpu",
        "sums · 2 local + 2 external a step",
        "7 is open, closes in 1:35 · 32 of 64 answered",
        "score 0.345 · rank 3–5 of 12 95 % interval 0.310–0.380, n = 640 from 10 rounds",
        "step 1,234 · training reward 0.793 · mean of 20: 0.730",
        "▲ rising",
        "informative 50% · cut short 10% · 12 tokens each",
        "1,600 rollouts published · delivered to others 3,410 times · used by others 1,304 times"
        " · 8 dropped unsent",
        "4 local + 4 external in the last step",
        "900 external used this season",
        "dropped: duplicate 12 · not informative 300",
        "512 tokens/s · 0.75 s a step",
        "What is 3 + 4?",
        "✓ right <answer>7</answer>",
    ):
        assert fact in text


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = full_view()
    view.show_step(report(completion="x" * 5000), totals())
    assert all(len(line) <= width for line in show(view, width=width).splitlines())


def test_a_countdown_follows_the_coordinators_clock() -> None:
    view = full_view()
    view.clock_ahead_s = 30
    assert "closes in 1:05" in show(view)


def test_a_round_to_come_is_counted_down_too() -> None:
    view = full_view()
    view.round = RoundInfo(8, "scheduled", "2026-01-01T14:03:00Z", "2026-01-01T15:00:00Z", 64)
    assert "8 opens in 2 h 03 min" in show(view)


def test_a_node_that_came_late_is_told_to_wait() -> None:
    view = full_view()
    view.skipped_round = 7
    text = show(view)
    assert "waiting for the next round (joined after round 7 opened)" in text
    assert "closes in" not in text
    view.skipped_round = 6
    assert "7 is open" in show(view)


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
    assert "score 0.345" in text
    assert words in text


def test_a_base_node_shows_that_it_is_untrained() -> None:
    view = full_view()
    view.arm, view.report, view.totals = "base", None, None
    assert "its model untrained" in show(view)


def test_a_client_that_will_be_refused_soon_is_told_so() -> None:
    view = full_view()
    assert "pipx upgrade" not in show(view)
    view.upgrade = describe_upgrade("1.4.0\x1b[2J", command="pipx upgrade swarm-node")
    text = show(view)
    assert "clients older than 1.4.0" in text
    assert "pipx upgrade swarm-node" in text
    assert "\x1b" not in text


def test_the_latest_refusal_is_shown_with_its_remedy() -> None:
    view = full_view()
    refusal = RefusedError(ErrorCode.ANSWER_LATE, "Round 6 closed 3 s ago.")
    view.show_refusal(refusal)
    text = " ".join(show(view).replace("│", " ").split())
    assert "answer.late: Round 6 closed 3 s ago." in text
    assert refusal.fix in text


def test_foreign_text_cannot_steer_the_terminal_or_the_layout() -> None:
    view = full_view()
    view.node = "[red]node[/red]"
    view.show_problem("code", "\x1b[2Jgone", "[blink]fix")
    view.show_step(report(completion="\x1b[31m[bold]red\nline"), totals())
    text = show(view)
    assert "\x1b" not in text
    assert "[red]node[/red]" in text
    assert "[bold]red line" in text
    assert "[blink]fix" in text


def test_nothing_is_coloured_where_colour_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    console.print(render(full_view(), now=NOON, clock=0))
    assert isinstance(console.file, io.StringIO)
    # Bold and dim stay; 30 to 49 and 90 to 107 are colours.
    assert not re.search(r"\x1b\[[\d;]*\b([34]\d|9\d|10\d)m", console.file.getvalue())


def test_memory_and_speed_are_shown() -> None:
    view = full_view()
    view.memory_use = MemoryUse(process=3 * 2**29, accelerator=2**33)
    text = show(view)
    assert "512 tokens/s · 0.75 s a step · memory 1.5 GiB · cpu 8.0 GiB" in text


def test_the_latest_checkpoint_is_shown_with_its_age() -> None:
    view = full_view()
    view.saved = SavedStep(step=1200, at=NOON - timedelta(seconds=75))
    assert "step 1,200, 1:15 ago" in show(view)


def test_the_latest_evaluation_stays_until_the_next() -> None:
    view = full_view()
    score = HeldOutScore(score=0.4, low=0.3, high=0.5, n=64)
    view.show_step(replace(report(), held_out=score), totals())
    view.show_step(replace(report(), step=1300), totals())
    assert "pass@1 0.400 [0.300, 0.500], n = 64, at step 1,234" in show(view)


def test_the_latest_notices_are_shown_and_cannot_steer_the_terminal() -> None:
    view = full_view()
    for number in range(5):
        view.show_notice(f"notice {number} \x1b[2J")
    text = show(view)
    assert "\x1b" not in text
    assert [f"notice {number}" in text for number in range(5)] == [False, False, True, True, True]


def test_before_the_first_step_of_a_new_season_there_is_no_curve_to_show() -> None:
    view = full_view()
    view.clear_training()
    text = show(view)
    assert "step 1,234 · training reward 0.793" in text
    assert "informative 50%" in text
    assert "mean of" not in text


def test_without_the_coordinators_count_the_nodes_own_is_shown() -> None:
    view = full_view()
    assert view.standing is not None
    told = msgspec.structs.replace(
        view.standing, published=None, delivered_to_others=None, used_by_others=None
    )
    view.standing, view.published_before = None, 0
    view.show_standing(told)
    text = show(view)
    assert "1,210 rollouts published · 8 dropped unsent" in text
    assert "delivered" not in text
    assert "used by others" not in text


@pytest.mark.parametrize(
    ("hand_out", "words"),
    [("lowered", "a quarter as often"), ("withheld", "withheld from other nodes")],
)
def test_a_node_whose_rollouts_are_handed_out_less_says_so(hand_out: str, words: str) -> None:
    view = full_view()
    assert view.standing is not None
    assert words not in show(view)
    view.show_standing(msgspec.structs.replace(view.standing, hand_out=hand_out))
    assert words in show(view)


def test_before_the_coordinator_told_the_total_of_external_rollouts_is_the_nodes_own() -> None:
    view = full_view()
    view.standing = None
    assert "2,100 external used this season" in show(view)


def test_the_totals_of_all_runs_are_shown_once_there_was_more_than_one() -> None:
    view = full_view()
    view.lifetime = Lifetime(view.steps_this_run, 9_000, 960, 900, 400, 7200.0)
    assert "all runs" not in show(view)
    view.lifetime = Lifetime(12_345, 1_000_000, 96_000, 90_000, 40_000, 7200.0)
    text = " ".join(show(view).replace("│", " ").split())
    assert "12,345 steps · 1,000,000 tokens · 96,000 rollouts made" in text
    assert "40,000 external used · 2.0 h" in text
