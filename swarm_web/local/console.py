"""The terminal output of the launcher: its own messages, and the output of each process."""

import asyncio
import contextlib
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_NAME_WIDTH = 10
_CHUNK_BYTES = 1 << 16
_COLOURS = (36, 33, 35, 32, 34, 96, 93, 95, 92, 94)  # SGR foregrounds: ECMA-48 and aixterm
_BOLD = 1


class Console:
    """Writes the launcher's messages and the output of all processes to one stream."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._coloured = out.isatty() and "NO_COLOR" not in os.environ
        self._started_at = time.monotonic()

    def write(self, text: str) -> None:
        """Write a line of output of the launcher, not of a process that it runs.

        The line begins with the seconds since the launcher started.
        """
        elapsed = time.monotonic() - self._started_at
        self._write_line(self._paint(f"[{elapsed:6.1f} s] {text}", _BOLD))

    @contextmanager
    def stage(self, step: str) -> Iterator[None]:
        """Write that a step begins and, if it ends without an error, how long it took."""
        started_at = time.monotonic()
        self.write(f"{step} ...")
        yield
        self.write(f"{step}: done in {time.monotonic() - started_at:.1f} s")

    def line(self, name: str, text: str) -> None:
        """Write one line of output of the process `name`, with this name before it."""
        colour = _COLOURS[zlib.crc32(name.encode()) % len(_COLOURS)]
        self._write_line(f"{self._paint(f'{name:<{_NAME_WIDTH}} |', colour)} {text}")

    async def follow(self, name: str, stream: asyncio.StreamReader) -> None:
        """Write the output of a process, line by line, until `stream` ends."""
        rest = b""
        while chunk := await stream.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _CHUNK_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self.line(name, line.decode(errors="replace").rstrip("\r"))
        if rest:
            self.line(name, rest.decode(errors="replace"))

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text

    def _write_line(self, line: str) -> None:
        # The site goes on even if nothing reads this output any more.
        with contextlib.suppress(BrokenPipeError):
            self._out.write(f"{line}\n")
            self._out.flush()
