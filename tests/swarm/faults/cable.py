"""A cable between nodes and a site that a test can cut: a TCP proxy in a thread of its own."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread

from swarm_web.local.probes import HOST

_CHUNK = 1 << 16


class Cable:
    """Passes each connection on to the first port that takes it, in turns.

    While it is cut, it takes whatever comes and delivers nothing: both sides have a half-open
    connection and are told nothing. What was connected then stays dead when it is mended.
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
        """What nodes take for the site's address."""
        return f"http://{HOST}:{self.port}"

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._is_cut = True
        self._dead |= self._open

    def mend(self) -> None:
        """Let new connections through."""
        self._is_cut = False

    def reset(self) -> None:
        """Tell both sides of the dead connections that they are dead."""
        for writer in tuple(self._dead):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    async def serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Hold one connection."""
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
        """Connect to one of the ports. Raises OSError when none takes it."""
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
            pass  # The other side is told by what follows.
        finally:
            if to not in self._dead:
                to.close()

    async def hang_up(self, server: asyncio.Server) -> None:
        """End what is still open."""
        server.close()
        for writer in self._open:
            writer.transport.abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*serving, return_exceptions=True), timeout=5)
        await asyncio.sleep(0)  # Transports close one turn of the loop later.


@contextmanager
def laid_cable(ports: Sequence[int]) -> Iterator[Cable]:
    """Lay a cable to these ports of this machine until the block ends."""
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
