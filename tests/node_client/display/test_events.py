"""The events for other programs: one JSON object per line, documented field by field."""

import json
import re
from pathlib import Path

import pytest

from node_client.display import events
from node_client.display.events import Event, as_line
from node_client.display.view import NodeView
from node_client.swarm.connection import ConnectionState
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import NodeStanding, RoundInfo
from tests.node_client.fakes import toy_season
from tests.node_client.panel_views import report, totals
from tests.node_client.shell_fakes import empty_view

KINDS = {kind.__struct_config__.tag: kind for kind in Event.__subclasses__()}
DOCUMENT = (Path(__file__).parents[3] / "docs" / "client.md").read_text()
OPEN = RoundInfo(7, "open", "2026-01-01T11:55:00Z", "2026-01-01T12:01:35Z", 64)
STANDING = NodeStanding(None, "amber", (1, 2), 0.5, (0.4, 0.6), 64, 1, 3, "", 9, 40, 120)


@pytest.fixture
def emitted() -> list[Event]:
    return []


@pytest.fixture
def view(emitted: list[Event]) -> NodeView:
    view = empty_view()
    view.listeners = [emitted.append]
    return view


def test_event_is_one_line_of_json_with_kind_and_time(view: NodeView, emitted: list[Event]) -> None:
    view.show_notice("two\nlines \x1b[2J")
    line = as_line(emitted[0])
    assert line.isprintable()
    parsed = json.loads(line)
    assert (parsed["event"], parsed["message"]) == ("notice", "two\nlines \x1b[2J")
    assert parsed["at"].endswith("+00:00")


def test_step_is_emitted_with_its_figures(view: NodeView, emitted: list[Event]) -> None:
    view.memory_use = events.MemoryUse(process=500)
    view.show_step(report(reward=0.25), totals())
    [step] = emitted
    assert isinstance(step, events.StepDone)
    assert (step.step, step.training_reward, step.seconds) == (1234, 0.25, 0.75)
    assert step.external_dropped == {"not_informative": 3}
    assert step.tokens_per_second == pytest.approx(384 / 0.75)
    assert (step.memory, step.accelerator_memory) == (500, None)


def test_round_is_emitted_once_per_phase(view: NodeView, emitted: list[Event]) -> None:
    view.show_round(OPEN)
    view.show_round(OPEN)
    view.show_round(None)
    assert [(event.round, event.phase) for event in emitted] == [(7, "open")]  # type: ignore[attr-defined]
    assert view.finished_round == OPEN


def test_acknowledged_answers_are_summed(view: NodeView, emitted: list[Event]) -> None:
    view.show_answers(7, 16)
    view.show_answers(7, 8)
    assert [event.acknowledged for event in emitted] == [16, 24]  # type: ignore[attr-defined]


def test_link_welcome_standing_checkpoint_and_refusal_are_emitted(
    view: NodeView, emitted: list[Event]
) -> None:
    view.show_connection(ConnectionState("waiting", "gone", retry_at=3.0))
    view.show_welcome("amber", "isolated", toy_season())
    view.show_standing(STANDING)
    view.show_checkpoint(40)
    view.show_refusal(RefusedError(ErrorCode.ANSWER_LATE, "too late"))
    kinds = [json.loads(as_line(event)) for event in emitted]
    assert [parsed["event"] for parsed in kinds] == [
        *("connection", "joined", "standing", "checkpoint", "problem")
    ]
    assert (kinds[0]["reason"], kinds[1]["season"]) == ("gone", "sums")
    assert (kinds[2]["rank"], kinds[2]["delivered_to_others"]) == ([1, 2], 120)
    assert (kinds[3]["step"], kinds[4]["code"]) == (40, "answer.late")


@pytest.mark.parametrize("tag", KINDS)
def test_every_field_of_an_event_is_documented(tag: str) -> None:
    found = re.search(rf"^\| `{tag}` \| (.*?) \|", DOCUMENT, re.MULTILINE)
    assert found, f"docs/client.md has no row for {tag}"
    named = re.findall(r"`(\w+)`", found[1])
    assert named == [name for name in KINDS[tag].__struct_fields__ if name != "at"]
