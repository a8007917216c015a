"""Notice an interrupt that `make` kept to itself.

Ctrl-C in a terminal reaches make and the launcher alike. A SIGINT sent to make alone, as scripts
and process managers do, is not passed on: make stops catching the signal and waits for its recipe.
Linux shows which signals a process catches (proc_pid_status(5), SigCgt).
"""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

_POLL_S = 0.5


def catches_interrupt(pid: int) -> bool:
    """Tell whether a process has a handler for SIGINT; false where that cannot be known."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1)


def watch_for_interrupt(pid: int) -> Coroutine[None, None, None]:
    """Look at a process now, and return what waits until it no longer catches SIGINT.

    For a process that does not catch it now, that is for ever.
    """
    return _wait_while_caught(pid) if catches_interrupt(pid) else _wait_for_ever()


async def _wait_while_caught(pid: int) -> None:
    while catches_interrupt(pid):  # noqa: ASYNC110  # another process's state sets no event
        await asyncio.sleep(_POLL_S)
    # The same Ctrl-C may be on its way to us: leave it time, or it would count as a second one.
    await asyncio.sleep(_POLL_S)


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()
