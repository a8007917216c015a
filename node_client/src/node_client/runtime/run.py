"""Runs the client: locks its state folder, loads the model, and runs the node until it ends."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Literal

import torch
from rich.console import Console
from rich.logging import RichHandler
from rich.text import Text

from node_client.display.events import Event, Started, Stopped, as_line
from node_client.display.lines import describe_ending, describe_step
from node_client.display.terminal import LineFormatter
from node_client.display.view import NodeView
from node_client.errors import INTERRUPTED, MemoryExhaustedError, NodeError
from node_client.learning.optimizer import checkpoint_bytes
from node_client.learning.team import ALONE, LaunchedTeam, Team
from node_client.learning.team_messages import Dismiss, follow
from node_client.model.memory.limits import limit_memory
from node_client.model.policy import Policy
from node_client.runtime.alone import train_offline
from node_client.runtime.journal import Journal
from node_client.runtime.node import SwarmNode
from node_client.runtime.showing import Runnable, run_with_panel, show_loading
from node_client.runtime.startup import check_disk, check_start, check_system, prepare
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.site import Site
from node_client.storage.state import StateDir
from node_client.swarm.handshake import UnansweredError, check_admission, explain_first_join
from swarm_protocol.version import CLIENT_VERSION
from swarm_tasks.verifier import Verifier

Output = Literal["panel", "plain", "json"]

log = logging.getLogger(__name__)


def run_follower(settings: Settings, team: LaunchedTeam) -> None:
    """Carry out messages from the leader, the first process of `team`, until dismissed.

    Raises NodeError if the device or model cannot be used, or if another process of the team ended.
    If memory runs out, returns without an error, because the leader reports that.

    A terminal's Ctrl-C and a launcher's SIGTERM reach every process. A follower ignores them,
    because the leader cannot finish its step without the followers.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    device = device_of(settings, team)
    limit_memory(device, settings.gpu_fraction)
    with suppress(MemoryExhaustedError):  # all processes raise it, and the leader reports it
        follow(team, Policy.load(settings.model, device=device))
    torch.distributed.destroy_process_group()


@contextmanager
def leading(team: Team) -> Iterator[None]:
    """Dismiss the team's followers at the end of the `with` block, also after an error.

    If this process failed in work that it does together with the followers, the followers still
    wait for its part and cannot be dismissed. The launcher ends them when this process ends.
    """
    try:
        yield
    finally:
        if isinstance(team, LaunchedTeam) and team.is_idle:
            with suppress(NodeError):  # a follower that has ended needs no message
                team.send(Dismiss())
            torch.distributed.destroy_process_group()


def device_of(settings: Settings, team: Team) -> str:
    """Return this process's device: the one assigned to it in a team, otherwise the setting."""
    return str(team.device) if isinstance(team, LaunchedTeam) else settings.device


async def run_client(settings: Settings, *, console: Console) -> None:
    """Run a node until it is stopped or its steps are done. Raises NodeError if the run fails.

    In a team of processes, the first one runs the node, and the others do what it requests
    (`run_follower`).
    """
    check_system(settings.arm)
    # Set by a launcher, such as torchrun, that started this process as one of several.
    is_launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
    team = LaunchedTeam() if is_launched else ALONE
    if isinstance(team, LaunchedTeam) and team.rank > 0:
        run_follower(settings, team)
        return
    with leading(team):
        await _run_node(settings, console=console, team=team)


async def _run_node(settings: Settings, *, console: Console, team: Team) -> None:
    output = choose_output(settings, console=console)
    set_up_log(console, output=output)
    journal = Journal(settings.state)
    with settings.state.lock(), journal.recording():
        if settings.site is not None:
            await _check_admission(settings.state, settings.site, settings.token)
        check_start(settings.state, settings.start)
        with show_loading(settings.model, console=console) as show:
            device = device_of(settings, team)
            limit_memory(device, settings.gpu_fraction)
            policy = await asyncio.to_thread(
                Policy.load, settings.model, device=device, on_progress=show
            )
            # Also for arm base: base and trained nodes must differ by training only.
            policy.set_precision(settings.training.precision)
        if settings.arm != "base":
            size = checkpoint_bytes(policy, settings.training)
            kept = settings.training.save_total_limit
            check_disk(settings.state, settings.start, checkpoint=size, kept=kept)
        view = NodeView(
            model=policy.name,
            parameters=policy.parameters,
            device=str(policy.device),
            arm=settings.arm,
            site=settings.site,
            listeners=[journal.on_event, *([_print_event] if output == "json" else [])],
        )
        view.emit(describe_start(settings, view))
        with report_end(view), Verifier() as verifier:
            async with ModelWorker() as worker:
                equipment = Equipment(
                    policy=policy, verifier=verifier, worker=worker, view=view, team=team
                )
                node = make_node(settings, equipment)
                # Last, so that a run that cannot start changes nothing.
                aside = prepare(settings.state, settings.start)
                if aside is not None:
                    log.warning(
                        "this run starts at step 1; the earlier checkpoints are in %s", aside
                    )
                stop_on_signals(node.stop, console=console)
                if output == "panel":
                    await run_with_panel(node, view, console=console)
                else:
                    await node.run()
        ending = describe_ending(view, folder=settings.state.path)
        with suppress(OSError):  # a terminal that was closed
            console.print(Text(f"Stopped. {describe_step(view)}\n{ending}"))


def make_node(settings: Settings, equipment: Equipment) -> Runnable:
    """Return a node of the coordinator that the settings name.

    If they name no coordinator, return a node that trains alone.
    """
    if settings.site is None:
        return train_offline(settings, equipment=equipment)
    return SwarmNode(settings, site=settings.site, equipment=equipment)


def choose_output(settings: Settings, *, console: Console) -> Output:
    """Return `json` or `plain` if set; otherwise `panel` on a terminal, and `plain` elsewhere."""
    if settings.json:
        return "json"
    return "plain" if settings.plain or not console.is_terminal else "panel"


def set_up_log(console: Console, *, output: Output) -> None:
    """Direct the client's log to standard output, or with JSON output to standard error.

    With a panel, only warnings and errors are logged, and they appear on `console`.
    """
    handler: logging.Handler
    if output == "panel":
        handler = RichHandler(console=console, show_path=False, show_level=False)
        handler.setFormatter(LineFormatter("%(message)s"))
    else:
        handler = logging.StreamHandler(sys.stderr if output == "json" else sys.stdout)
        handler.setFormatter(LineFormatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    client = logging.getLogger("node_client")
    client.addHandler(handler)
    client.setLevel(logging.WARNING if output == "panel" else logging.INFO)


def describe_start(settings: Settings, view: NodeView) -> Started:
    """Return the first event of a run."""
    return Started(
        client=CLIENT_VERSION,
        site=settings.site.base if settings.site is not None else None,
        model=view.model,
        parameters=view.parameters,
        device=view.device,
        arm=view.arm,
        state_dir=str(settings.state.path),
    )


@contextmanager
def report_end(view: NodeView) -> Iterator[None]:
    """Report the end of the `with` block to the view's listeners, even after an error.

    If a NodeError ended the block, this error is reported before the end, and then raised again.
    """
    try:
        yield
    except NodeError as problem:
        view.show_problem(problem.code, problem.message, problem.fix)
        raise
    finally:
        view.emit(Stopped(step=view.report.step if view.report is not None else None))


def _print_event(event: Event) -> None:
    """Write an event to standard output. If that fails, this and all later events are lost."""
    try:
        sys.stdout.write(f"{as_line(event)}\n")
        sys.stdout.flush()
    except OSError as problem:
        log.warning("standard output accepts no more events: %s. Training continues.", problem)
        # For the rest of the buffer too, which Python would fail to write at exit.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def stop_on_signals(stop: Callable[[], None], *, console: Console) -> None:
    """Stop the node after its step on the first Ctrl-C or SIGTERM, and at once on the second.

    A second signal must be of the same kind as the first, because a launcher also sends SIGTERM
    after a terminal's Ctrl-C. SIGHUP, which a closed terminal sends, is handled like SIGTERM,
    except under nohup.
    """
    loop = asyncio.get_running_loop()
    received: set[int] = set()

    def handle(number: int, frame: FrameType | None) -> None:
        again = number in received
        received.add(number)
        if again:
            console.show_cursor()
            # A step in the model's thread cannot be interrupted, and exiting would wait for it.
            os._exit(INTERRUPTED)
        loop.call_soon_threadsafe(stop)

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)
    hangup: int | None = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, handle)


async def _check_admission(state: StateDir, site: Site, token: str) -> None:
    """Check, before a large model is loaded, that the coordinator accepts the token.

    Raises NodeError if the coordinator refuses the token. If it does not answer, raises NodeError
    only for a node that has never joined it: any other node can train without a connection.
    """
    try:
        await check_admission(site.socket, token)
    except UnansweredError as problem:
        if not state.load_for(site).node:
            raise explain_first_join(problem, site) from None
        log.warning("%s; continuing without it", problem)
