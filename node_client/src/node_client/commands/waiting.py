"""What a refused node does where its exit would only have it started again."""

import signal
from threading import Event
from types import FrameType

import typer

from node_client.display.terminal import clean
from node_client.errors import CoordinatorRefusedError

# Where a wait without an end cannot be interrupted, a signal is noticed after so long.
LOOK_EVERY_S = 1.0


def wait_until_stopped(refusal: CoordinatorRefusedError) -> None:
    """Say why the node was refused, and wait for SIGTERM or Ctrl-C."""
    fix = clean(refusal.fix)  # in the coordinator's words, as the message is
    typer.secho(clean(f"{refusal.code}: {refusal.message}"), fg="red", err=True)
    typer.echo(f"{fix} Then start this node again: it waits to be stopped.", err=True)
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    while not stopped.wait(LOOK_EVERY_S):
        pass
