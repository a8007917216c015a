"""A part's process and what it writes."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import STDOUT, Process
from collections.abc import Sequence
from dataclasses import dataclass

from swarm_web.local.console import Console
from swarm_web.local.errors import LaunchError
from swarm_web.local.parts import Part, spawn_options

_GRACE_S = 1.0


@dataclass(frozen=True)
class Running:
    """A started part. `output` ends when the last process that inherited it has ended."""

    part: Part
    process: Process
    output: asyncio.StreamReader

    def ask_to_stop(self) -> None:
        """Send the part its own stop signal, if it still lives."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(self.part.stop_signal)

    def kill(self, kill_signal: signal.Signals = signal.SIGKILL) -> None:
        """Kill the process and all of its group that is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, kill_signal)

    async def outlive(self, console: Console) -> int:
        """Write the part's lines until it has ended, and end what it started; return its status.

        Cancelling this asks the part to stop, and kills it a second later.
        """
        following = asyncio.create_task(console.follow(self.part.name, self.output))
        try:
            return await self.process.wait()
        except asyncio.CancelledError:
            self.ask_to_stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), _GRACE_S)
            raise
        finally:
            self.kill()
            await self.process.wait()
            await following


async def spawn(part: Part, *, keep_open: Sequence[int] = ()) -> Running:
    """Start the part. Raises LaunchError when there is no such program.

    The pipe is our own: asyncio's would keep `wait()` waiting for every grandchild that holds it.
    """
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *part.argv, stdout=write_end, stderr=STDOUT, **spawn_options(part, keep_open=keep_open)
        )
    except OSError as error:
        os.close(read_end)
        raise LaunchError(f"{part.name} cannot be started: {error}.") from error
    finally:
        os.close(write_end)
    output = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(read_end, "rb")
    )
    return Running(part=part, process=process, output=output)
