"""Reads the status of nodes from this machine and from their coordinator, and renders it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
from rich.table import Table
from rich.text import Text

from node_client.display.figures import describe_age, explain_remark
from node_client.display.terminal import fold_line
from node_client.errors import NodeError
from node_client.settings.config import SettingChoices
from node_client.site import Site
from node_client.storage.run_record import RunState, find_standstill, read_run
from node_client.storage.state import Lifetime, NodeRecord, StateDir, TrainingProgress

HTTP_TIMEOUT_S = 10.0


class NodeStatus(msgspec.Struct):
    """The answer of `GET /api/v1/nodes/<name>`; unknown fields are ignored.

    `score` and its 95 % `interval` are fractions, over `n` questions in `rounds` rounds. `rank` has
    the node's best and worst possible rank. It is None for a node without a rank; `remark` then
    says why, but is empty before the node's first scored round.
    """

    node: str
    model: str = ""
    arm: str = ""
    connected: bool = False
    last_seen: str | None = None
    rank: tuple[int, int] | None = None
    remark: str = ""
    score: float | None = None
    interval: tuple[float, float] | None = None
    n: int = 0
    rounds: int = 0
    external_used: int = 0
    published: int = 0
    delivered_to_others: int | None = None
    used_by_others: int | None = None
    training_reward: float | None = None
    step: int | None = None


def fetch_status(site: Site, node: str) -> NodeStatus:
    """Request a node's status from the coordinator.

    Raises NodeError if the request fails, or if the reply is not a node's status.
    """
    address = site.api(node)
    try:
        response = httpx.get(address, timeout=HTTP_TIMEOUT_S)
        response.raise_for_status()
        return msgspec.json.decode(response.content, type=NodeStatus)
    except httpx.HTTPError as problem:
        raise NodeError(
            f"{address} cannot be read: {problem or type(problem).__name__}",
            fix="Check the address and the network, for example with `swarm-node doctor`.",
        ) from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise NodeError(
            f"{address} does not have a node's status: {problem}",
            fix="Check that the address is a coordinator's, and update the client.",
        ) from problem


class LocalStatus(msgspec.Struct):
    """A node's status on this machine, without the token.

    `checkpoint` has the progress at the latest checkpoint, `lifetime` the totals over all runs,
    `site` the coordinator's address, and `run` the state of the latest run. Each of these four is
    None if there is nothing to show.
    """

    node: str
    arm: str
    model: str
    checkpoint: TrainingProgress | None
    lifetime: Lifetime | None
    site: str | None
    state_dir: str
    run: RunState | None = None


class Status(msgspec.Struct):
    """A node's status on this machine and at its coordinator.

    `there` is None if no coordinator's address was given, or if the node has not joined yet.
    """

    here: LocalStatus
    there: NodeStatus | None = None


def read_status(choices: SettingChoices) -> list[Status]:
    """Return the status of the chosen coordinator's node, on this machine and at the coordinator.

    If no coordinator is chosen, return the status of each node of this machine, on this machine
    only. Raises NodeError when a state folder or the coordinator's answer cannot be read.
    """
    site, state = choices.site, choices.state
    if site is not None:
        here = read_local_status(state, state.load_for(site))
        return [Status(here, fetch_status(site, here.node) if here.node else None)]
    return [Status(read_local_status(folder, folder.load())) for folder in choices.folders]


def find_unhealthy(folders: Sequence[StateDir], *, within: timedelta, now: datetime) -> list[str]:
    """Return a line for each node that makes no progress, with its folder and the reason.

    A node makes no progress if it is not running, or if more than `within` has passed since its
    last step. The start of the node and the end of a pause count as steps. A paused node gets no
    line. A base node takes no steps, so it gets no line while it is running. Raises SettingsError
    when a state folder cannot be read.
    """
    found = []
    for state in folders:
        trains = state.load().arm != "base"
        problem = find_standstill(read_run(state), trains=trains, within=within, now=now)
        if problem:
            found.append(f"{state.path}: {fold_line(problem)}")
    return found


def read_local_status(state: StateDir, remembered: NodeRecord) -> LocalStatus:
    """Return a node's status, given its state folder and the node record saved there.

    Raises SettingsError when the folder cannot be read.
    """
    lifetime = state.load_lifetime()
    return LocalStatus(
        node=remembered.node,
        arm=remembered.arm or "",
        model=remembered.model,
        checkpoint=state.load_progress(),
        lifetime=lifetime if lifetime.steps else None,
        site=remembered.url or None,
        state_dir=str(state.path),
        run=read_run(state),
    )


def describe_status(status: Status) -> str:
    """Return a node's status as one line of JSON."""
    return msgspec.json.encode(status).decode()


def render_status(found: Sequence[Status]) -> Table:
    """Return one table with the status of all given nodes, separated by empty rows."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for status in found:
        if table.rows:
            table.add_row()
        for label, value in _rows(status):
            table.add_row(label, Text(fold_line(value)))  # some values come from a coordinator
    return table


def _rows(status: Status) -> list[tuple[str, str]]:
    there = _remote_rows(status.there) if status.there is not None else []
    return [*_local_rows(status.here), *_life(status.here.lifetime), *there]


def _local_rows(here: LocalStatus) -> list[tuple[str, str]]:
    rows = [("node", here.node or "not joined yet")]
    if here.site is not None:
        rows.append(("site", here.site))
    rows.append(("state folder", here.state_dir))
    if here.run is not None:
        rows.append(("state", describe_run(here.run, now=datetime.now(UTC))))
    if here.arm == "base":
        rows.append(("training", "none: a base node answers with its model untrained"))
    if here.checkpoint is None:
        return [*rows, ("last checkpoint", "none")]
    return [
        *rows,
        ("last checkpoint", f"step {here.checkpoint.step}, {here.checkpoint.saved_at}"),
        ("season then", here.checkpoint.season),
        ("model here", here.checkpoint.model),
    ]


def describe_run(run: RunState, *, now: datetime) -> str:
    """Return one line about the state of a run, in local time."""
    if run.state == "killed":
        return f"not running: killed, or the machine went down, after {_local(run.since)}"
    if run.state == "stopped":
        return f"stopped since {_local(run.since)}" + (f": {run.why}" if run.why else "")
    text = f"{run.state} since {_local(run.since)}"
    if run.state == "paused":
        until = f", until {_local(run.until)}" if run.until is not None else ""
        return f"{text}{until}: {run.why}"
    if run.last_step_at is not None:
        text += f", last step {describe_age(datetime.fromisoformat(run.last_step_at), now=now)}"
    if run.offline_since is not None:
        text += f"; offline since {_local(run.offline_since)}"
    return text


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}"


def _life(lifetime: Lifetime | None) -> list[tuple[str, str]]:
    if lifetime is None:
        return []
    hours = lifetime.seconds / 3600
    return [
        ("all runs", f"{lifetime.steps:,} steps, {lifetime.tokens:,} tokens, {hours:.1f} h"),
        ("rollouts", f"{lifetime.rollouts_made:,} made, {lifetime.rollouts_shared:,} shared"),
        ("of others", f"{lifetime.external_used:,} used"),
    ]


def _remote_rows(remote: NodeStatus) -> list[tuple[str, str]]:
    seen = "connected" if remote.connected else f"last seen {remote.last_seen or 'never'}"
    rows = [
        ("coordinator", seen),
        ("arm", remote.arm),
        ("step", "none" if remote.step is None else f"{remote.step}"),
        ("training reward", _fraction(remote.training_reward)),
        ("published", f"{remote.published:,} rollouts"),
        ("delivered to others", _count(remote.delivered_to_others)),
        ("used by others", _count(remote.used_by_others)),
        ("external used", f"{remote.external_used:,} rollouts"),
        ("judge score", _fraction(remote.score)),
    ]
    if remote.interval is not None:
        low, high = remote.interval
        rows.append(("95 % interval", f"{low:.3f}–{high:.3f}, n = {remote.n:,}"))
    if remote.rank is not None:
        first, last = remote.rank
        rows.append(("rank", f"{first}" if first == last else f"{first}–{last}"))
    elif remote.remark:
        rows.append(("rank", explain_remark(remote.remark)))
    return [*rows, ("rounds answered", f"{remote.rounds}")]


def _count(times: int | None) -> str:
    return "unknown" if times is None else f"{times:,} times"


def _fraction(value: float | None) -> str:
    return "none yet" if value is None else f"{value:.3f}"
