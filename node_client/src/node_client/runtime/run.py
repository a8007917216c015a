"""One run of the client: lock, model, verifier, node, display and signals put together."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Literal

from rich.console import Console
from rich.logging import RichHandler
from rich.text import Text

from node_client.display.events import Event, Started, Stopped, as_line, ignore, tell_both
from node_client.display.lines import describe_ending, describe_step
from node_client.display.terminal import LineFormatter
from node_client.display.view import View
from node_client.errors import INTERRUPTED, CoordinatorRefusedError, NodeError
from node_client.learning.optimizer import checkpoint_bytes
from node_client.learning.team import ALONE, LaunchedTeam, Team
from node_client.model.memory.limits import limit_memory
from node_client.model.policy import Policy
from node_client.runtime.alone import LoneNode
from node_client.runtime.beginning import check_disk, check_start, check_system, prepare
from node_client.runtime.journal import Journal
from node_client.runtime.loading import loading_shown
from node_client.runtime.node import Node
from node_client.runtime.showing import Runnable, run_with_panel
from node_client.runtime.teamwork import device_of, is_launched, leading, run_follower
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


async def run_client(settings: Settings, *, console: Console) -> None:
    """Run a node until it is done, stopped or refused. Raises NodeError.

    Of several processes that were launched together the first one is the node.
    """
    check_system(settings.arm)
    team = LaunchedTeam() if is_launched() else ALONE
    if isinstance(team, LaunchedTeam) and team.rank > 0:
        run_follower(settings, team)
        return
    with leading(team):
        await _run_node(settings, console=console, team=team)


async def _run_node(settings: Settings, *, console: Console, team: Team) -> None:
    output = choose_output(settings, console=console)
    set_up_log(console, output=output)
    journal = Journal(settings.state)
    with settings.state.lock(), journal.kept():
        if settings.site is not None:
            await _check_admission(settings.state, settings.site, settings.token)
        check_start(settings.state, settings.start)
        with loading_shown(settings.model, console=console) as tell:
            device = device_of(settings, team)
            limit_memory(device, settings.gpu_fraction)
            policy = await asyncio.to_thread(
                Policy.load, settings.model, device=device, on_progress=tell
            )
            # Also of one that never trains: base and trained nodes shall differ by training only.
            policy.set_precision(settings.training.precision)
        if settings.arm != "base":
            size = checkpoint_bytes(policy, settings.training)
            check_disk(settings.state, checkpoint=size, kept=settings.training.save_total_limit)
        # Last: a run that cannot start leaves all as it was.
        aside = prepare(settings.state, settings.start)
        if aside is not None:
            log.warning("this run begins anew; the checkpoints of before are in %s", aside)
        view = View(
            model=policy.name,
            parameters=policy.parameters,
            device=str(policy.device),
            arm=settings.arm,
            site=settings.site,
            listen=tell_both(journal.hear, _print_event if output == "json" else ignore),
        )
        view.listen(describe_start(settings, view))
        with Verifier() as verifier:
            async with ModelWorker() as worker:
                equipment = Equipment(
                    policy=policy, verifier=verifier, worker=worker, view=view, team=team
                )
                node = make_node(settings, equipment)
                stop_on_signals(node.stop, console=console)
                with ending_told(view):
                    if output == "panel":
                        await run_with_panel(node, view, console=console)
                    else:
                        await node.run()
        ending = describe_ending(view, folder=settings.state.path)
        with suppress(OSError):  # a terminal that was closed
            console.print(Text(f"Stopped. {describe_step(view)}\n{ending}"))


def make_node(settings: Settings, equipment: Equipment) -> Runnable:
    """Return a node of the settings' swarm, or one that trains alone."""
    if settings.site is None:
        return LoneNode(settings, equipment=equipment)
    return Node(settings, site=settings.site, equipment=equipment)


def choose_output(settings: Settings, *, console: Console) -> Output:
    """Return in which form this run tells what happens."""
    if settings.json:
        return "json"
    return "plain" if settings.plain or not console.is_terminal else "panel"


def set_up_log(console: Console, *, output: Output) -> None:
    """Write the client's own news to the terminal; beside a panel, warnings are enough.

    Beside JSON they go to standard error.
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


def describe_start(settings: Settings, view: View) -> Started:
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
def ending_told(view: View) -> Iterator[None]:
    """Tell a listener why a run ended, and that it did."""
    try:
        yield
    except NodeError as problem:
        code = problem.code if isinstance(problem, CoordinatorRefusedError) else "error"
        view.note_problem(code, problem.message, problem.fix)
        raise
    finally:
        view.listen(Stopped(step=view.report.step if view.report is not None else None))


def _print_event(event: Event) -> None:
    """Write an event to standard output; once that fails, no event is written any more."""
    try:
        sys.stdout.write(f"{as_line(event)}\n")
        sys.stdout.flush()
    except OSError as problem:
        log.warning("standard output takes no more events: %s. Training goes on.", problem)
        # What is left in the buffer goes there too, or Python would fail to write it at exit.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def stop_on_signals(stop: Callable[[], None], *, console: Console) -> None:
    """Let the first Ctrl-C or SIGTERM stop the node in good order, and the second one at once.

    A launcher passes a terminal's Ctrl-C on as SIGTERM, so one of each is not a second one. A
    terminal that is closed sends SIGHUP, which nohup has ignored.
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
    """Find out before a large model is loaded whether the coordinator takes the token.

    Where this node was welcomed before, a coordinator that does not answer is no reason not to
    train. Raises NodeError.
    """
    try:
        await check_admission(site.socket, token)
    except UnansweredError as problem:
        if not state.recall(site).node:
            raise explain_first_join(problem, site) from None
        log.warning("%s; going on without it", problem)
