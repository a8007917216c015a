"""A text stream that records its output and can be awaited."""

import asyncio
import io


class Transcript(io.StringIO):
    """A text stream; `shows()` returns when a text has been written."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self._written = asyncio.Event()

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        self._written.set()
        return super().write(text)

    async def shows(self, text: str, *, times: int = 1) -> None:
        """Wait until `text` has been written `times` times. Raises TimeoutError after 10 s."""
        async with asyncio.timeout(10):
            while self.getvalue().count(text) < times:
                self._written.clear()
                await self._written.wait()
