"""A connection between nodes and a site that a test can cut: a TCP proxy in its own thread."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread

from swarm_web.local.probes import HOST

_CHUNK = 1 << 16


class Cable:
    """Forwards each connection to one of the ports, in turn, or to the next one that accepts it.

    While it is cut, it accepts all data and forwards nothing: both sides have a half-open
    connection without an error. Connections of that time stay dead after `mend`.
    """

    def __init__(self, ports: Sequence[int], loop: asyncio.AbstractEventLoop) -> None:
        self.port = 0
        self._ports = list(ports)
        self._turn = 0
        self._is_cut = False
        self._dead: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = loop

    @property
    def url(self) -> str:
        """The address that nodes use for the site."""
        return f"http://{HOST}:{self.port}"

    def cut(self) -> None:
        """Stop forwarding."""
        self._is_cut = True
        self._dead |= self._open

    def mend(self) -> None:
        """Forward new connections again."""
        self._is_cut = False

    def reset(self) -> None:
        """Reset the dead connections on both sides."""
        for writer in tuple(self._dead):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    async def serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self._open.add(back)
        if self._is_cut:
            self._dead.add(back)
            await self._pass(near, back)
            return
        try:
            far, forth = await self._reach()
        except OSError:
            back.transport.abort()
            return
        self._open.add(forth)
        await asyncio.gather(self._pass(near, forth), self._pass(far, back))

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to one of the ports. Raises OSError if none accepts."""
        self._turn += 1
        places = [(self._turn + n) % len(self._ports) for n in range(len(self._ports))]
        for place in places[:-1]:
            with suppress(OSError):
                return await asyncio.open_connection(HOST, self._ports[place])
        return await asyncio.open_connection(HOST, self._ports[places[-1]])

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(_CHUNK):
                if to not in self._dead:
                    to.write(chunk)
                    await to.drain()
        except OSError:
            pass  # The code below closes the other side.
        finally:
            if to not in self._dead:
                to.close()

    async def hang_up(self, server: asyncio.Server) -> None:
        """Abort the open connections and stop."""
        server.close()
        for writer in self._open:
            writer.transport.abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*serving, return_exceptions=True), timeout=5)
        await asyncio.sleep(0)  # Transports close in the next iteration of the loop.


@contextmanager
def laid_cable(ports: Sequence[int]) -> Iterator[Cable]:
    """Run a proxy for these ports of this machine until the block ends."""
    loop = asyncio.new_event_loop()
    cable = Cable(ports, loop)
    server = loop.run_until_complete(asyncio.start_server(cable.serve, HOST, 0))
    cable.port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield cable
    finally:
        asyncio.run_coroutine_threadsafe(cable.hang_up(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
