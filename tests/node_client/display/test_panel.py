import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import Console

from node_client.display.events import CheckpointSaved, MemoryUse
from node_client.display.lines import describe_upgrade
from node_client.display.panel import render
from node_client.display.view import NodeView
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
def test_panel_shows_all_facts_about_a_node(width: int) -> None:
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


def test_countdown_uses_the_clock_of_the_coordinator() -> None:
    view = full_view()
    view.clock_ahead_s = 30
    assert "closes in 1:05" in show(view)


def test_scheduled_round_has_a_countdown() -> None:
    view = full_view()
    view.round = RoundInfo(8, "scheduled", "2026-01-01T14:03:00Z", "2026-01-01T15:00:00Z", 64)
    assert "8 opens in 2 h 03 min" in show(view)


def test_node_that_joined_late_waits_for_the_next_round() -> None:
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
def test_missing_rank_is_shown_with_its_reason(remark: StandingRemark, words: str) -> None:
    view = full_view()
    assert view.standing is not None
    view.standing = msgspec.structs.replace(view.standing, rank=None, remark=remark)
    text = show(view)
    assert "score 0.345" in text
    assert words in text


def test_base_node_is_shown_as_untrained() -> None:
    view = full_view()
    view.arm, view.report, view.totals = "base", None, None
    assert "its model untrained" in show(view)


def test_outdated_client_is_shown_its_upgrade_command() -> None:
    view = full_view()
    assert "pipx upgrade" not in show(view)
    view.upgrade = describe_upgrade("1.4.0\x1b[2J", command="pipx upgrade swarm-node")
    text = show(view)
    assert "clients older than 1.4.0" in text
    assert "pipx upgrade swarm-node" in text
    assert "\x1b" not in text


def test_latest_refusal_is_shown_with_its_remedy() -> None:
    view = full_view()
    refusal = RefusedError(ErrorCode.ANSWER_LATE, "Round 6 closed 3 s ago.")
    view.show_refusal(refusal)
    text = " ".join(show(view).replace("│", " ").split())
    assert "answer.late: Round 6 closed 3 s ago." in text
    assert refusal.fix in text


def test_foreign_text_cannot_control_the_terminal_or_the_layout() -> None:
    view = full_view()
    view.node = "[red]node[/red]"
    view.show_problem("code", "\x1b[2Jgone", "[blink]fix")
    view.show_step(report(completion="\x1b[31m[bold]red\nline"), totals())
    text = show(view)
    assert "\x1b" not in text
    assert "[red]node[/red]" in text
    assert "[bold]red line" in text
    assert "[blink]fix" in text


def test_panel_has_no_colours_if_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_latest_checkpoint_is_shown_with_its_age() -> None:
    view = full_view()
    view.saved = CheckpointSaved(step=1200, at=(NOON - timedelta(seconds=75)).isoformat())
    assert "step 1,200, 1:15 ago" in show(view)


def test_latest_evaluation_is_shown_until_the_next() -> None:
    view = full_view()
    score = HeldOutScore(score=0.4, low=0.3, high=0.5, n=64)
    view.show_step(replace(report(), held_out=score), totals())
    view.show_step(replace(report(), step=1300), totals())
    assert "pass@1 0.400 [0.300, 0.500], n = 64, at step 1,234" in show(view)


def test_latest_notices_are_shown_and_cannot_control_the_terminal() -> None:
    view = full_view()
    for number in range(5):
        view.show_notice(f"notice {number} \x1b[2J")
    text = show(view)
    assert "\x1b" not in text
    assert [f"notice {number}" in text for number in range(5)] == [False, False, True, True, True]


def test_curve_is_not_shown_before_the_first_step_of_a_new_season() -> None:
    view = full_view()
    view.clear_training()
    text = show(view)
    assert "step 1,234 · training reward 0.793" in text
    assert "informative 50%" in text
    assert "mean of" not in text


def test_own_count_of_published_rollouts_replaces_a_missing_one() -> None:
    view = full_view()
    assert view.standing is not None
    incomplete = msgspec.structs.replace(
        view.standing, published=None, delivered_to_others=None, used_by_others=None
    )
    view.standing, view.published_before = None, 0
    view.show_standing(incomplete)
    text = show(view)
    assert "1,210 rollouts published · 8 dropped unsent" in text
    assert "delivered" not in text
    assert "used by others" not in text


@pytest.mark.parametrize(
    ("hand_out", "words"),
    [("lowered", "a quarter as often"), ("withheld", "withheld from other nodes")],
)
def test_lowered_or_withheld_hand_out_weight_is_shown(hand_out: str, words: str) -> None:
    view = full_view()
    assert view.standing is not None
    assert words not in show(view)
    view.show_standing(msgspec.structs.replace(view.standing, hand_out=hand_out))
    assert words in show(view)


def test_own_total_of_external_rollouts_replaces_a_missing_one() -> None:
    view = full_view()
    view.standing = None
    assert "2,100 external used this season" in show(view)


def test_totals_of_all_runs_are_shown_after_more_than_one_run() -> None:
    view = full_view()
    view.lifetime = Lifetime(view.steps_this_run, 9_000, 960, 900, 400, 7200.0)
    assert "all runs" not in show(view)
    view.lifetime = Lifetime(12_345, 1_000_000, 96_000, 90_000, 40_000, 7200.0)
    text = " ".join(show(view).replace("│", " ").split())
    assert "12,345 steps · 1,000,000 tokens · 96,000 rollouts made" in text
    assert "40,000 external used · 2.0 h" in text
