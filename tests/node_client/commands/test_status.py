import asyncio
import io
import json
import time
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from node_client.commands.status import (
    LocalStatus,
    NodeStatus,
    Status,
    describe_run,
    describe_status,
    fetch_status,
    read_local_status,
    render_status,
)
from node_client.errors import NodeError
from node_client.storage.run_record import RunState
from node_client.storage.state import Lifetime, NodeRecord, StateDir, TrainingProgress
from tests.node_client.coordinator import Coordinator, running

ADDRESS = "/api/v1/nodes/amber-quiet-heron"
SAVED = TrainingProgress(
    step=40, training_reward=0.5, model="tiny", season="Autumn", saved_at="2026-01-01T12:00:00Z"
)
HERE = LocalStatus(
    node="amber-quiet-heron",
    arm="swarm",
    model="tiny",
    checkpoint=SAVED,
    lifetime=None,
    site="https://swarm.example.org",
    state_dir="/state/swarm.example.org",
)


def show(here: LocalStatus = HERE, remote: NodeStatus | None = None) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(render_status([Status(here, remote)]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def fetch(body: object, *, status: HTTPStatus = HTTPStatus.OK) -> NodeStatus:
    coordinator = Coordinator()
    coordinator.pages[ADDRESS] = (status, json.dumps(body))
    async with running(coordinator):
        return await asyncio.to_thread(fetch_status, coordinator.site, "amber-quiet-heron")


async def test_figures_of_the_coordinator_are_shown_beside_the_local_ones() -> None:
    remote = await fetch(
        {
            "node": "amber-quiet-heron",
            "model": "tiny",
            "arm": "swarm",
            "connected": True,
            "rank": [3, 5],
            "score": 0.345,
            "interval": [0.31, 0.38],
            "n": 640,
            "rounds": 10,
            "external_used": 1900,
            "training_reward": 0.25,
            "step": 42,
        }
    )
    text = show(remote=remote)
    for fact in ("step 40", "connected", "0.345", "0.310–0.380, n = 640", "3–5", "1,900", "0.250"):
        assert fact in text


def test_lifetime_totals_are_shown() -> None:
    lifetime = Lifetime(
        steps=1200,
        tokens=34567,
        rollouts_made=9600,
        rollouts_shared=9000,
        external_used=4000,
        seconds=9000,
    )
    here = replace(HERE, lifetime=lifetime)
    text = show(here)
    for fact in ("1,200 steps", "34,567 tokens", "2.5 h", "9,600 made", "9,000 shared", "4,000"):
        assert fact in text
    described = json.loads(describe_status(Status(here)))
    assert described["here"]["lifetime"]["rollouts_shared"] == 9000


async def test_unscored_node_has_no_figures_yet() -> None:
    remote = await fetch(
        {"node": "n", "score": None, "interval": None, "rank": None, "training_reward": None}
    )
    assert "none yet" in show(remote=remote)


async def test_missing_rank_is_shown_with_its_reason() -> None:
    remote = await fetch({"node": "n", "rank": None, "score": 0.5, "remark": "quarantined"})
    assert "the operator took this node out" in show(remote=remote)


async def test_reason_from_a_newer_coordinator_is_shown_unchanged() -> None:
    remote = await fetch({"node": "n", "remark": "asleep"})
    assert "not ranked: asleep" in show(remote=remote)


def test_base_node_is_shown_as_untrained() -> None:
    assert "model untrained" in show(replace(HERE, arm="base"))


async def test_unknown_fields_from_a_newer_coordinator_are_ignored() -> None:
    assert (await fetch({"node": "n", "mood": "sunny"})).node == "n"


@pytest.mark.parametrize("body", [[], {"node": 5}, "text"])
async def test_invalid_response_is_explained(body: object) -> None:
    with pytest.raises(NodeError, match="does not have"):
        await fetch(body)


async def test_unknown_node_is_explained() -> None:
    with pytest.raises(NodeError, match="404"):
        await fetch({}, status=HTTPStatus.NOT_FOUND)


def test_local_data_are_shown() -> None:
    text = show()
    for fact in ("amber-quiet-heron", "https://swarm.example.org", "/state/swarm", "step 40"):
        assert fact in text


async def test_text_of_a_coordinator_cannot_control_the_terminal() -> None:
    remote = await fetch(
        {"node": "n", "arm": "\x1b[2J", "last_seen": "\x1b[2J", "remark": "\x1b[2J"}
    )
    season = replace(SAVED, season="\x1b[2J")
    assert "\x1b" not in show(replace(HERE, node="\x1b[2J", checkpoint=season), remote)


def test_two_nodes_are_separated_by_a_line() -> None:
    one, two = (render_status([Status(HERE)] * nodes).row_count for nodes in (1, 2))
    assert two == 2 * one + 1


def test_json_contains_both_sides_and_no_token(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.save_progress(SAVED)
    remembered = NodeRecord(url="https://x", token="secret", model="tiny", arm="swarm", node="n")
    here = read_local_status(state, remembered)
    described = json.loads(describe_status(Status(here, NodeStatus(node="n", score=0.25))))
    assert described["here"]["checkpoint"]["step"] == 40
    assert (described["here"]["node"], described["there"]["score"]) == ("n", 0.25)
    assert "secret" not in str(described)


def test_json_contains_null_for_a_side_without_data(tmp_path: Path) -> None:
    described = json.loads(
        describe_status(Status(read_local_status(StateDir(tmp_path), NodeRecord())))
    )
    here: dict[str, object] = {"node": "", "arm": "", "model": ""}
    here |= {"checkpoint": None, "lifetime": None}
    here |= {"site": None, "state_dir": str(tmp_path), "run": None}
    assert described == {"here": here, "there": None}


AT = "2026-01-01T12:00:00+00:00"
RUNNING = RunState(state="running", since=AT, last_step_at=AT)


@pytest.mark.parametrize(
    ("run", "described"),
    [
        (RUNNING, "running since 2026-01-01 12:00:00, last step 1:30 ago"),
        (replace(RUNNING, offline_since=AT), "; offline since 2026-01-01 12:00:00"),
        (
            replace(RUNNING, state="paused", until=AT, why="it is outside its hours"),
            "paused since 2026-01-01 12:00:00, until 2026-01-01 12:00:00: it is outside its hours",
        ),
        (replace(RUNNING, state="stopped", why="Refused."), "12:00:00: Refused."),
        (replace(RUNNING, state="killed"), "killed, or the machine went down, after"),
    ],
)
def test_state_of_a_run_is_described_in_one_line(
    run: RunState, described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now = datetime(2026, 1, 1, 12, 1, 30, tzinfo=UTC)
    try:
        assert described in describe_run(run, now=now)
    finally:
        monkeypatch.undo()
        time.tzset()
