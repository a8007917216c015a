"""A proxy that counts the bytes that programs download through it over TLS."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_CHUNK = 1 << 16


class CountingProxy:
    """A proxy for CONNECT requests (RFC 9110, 9.3.6); `received` counts bytes from the servers."""

    def __init__(self) -> None:
        self.received = 0
        self.url = ""
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Serve one client: connect to the server that it names, and pass bytes both ways.

        Answers 502 if the server cannot be reached.
        """
        self._open.add(back)
        asked = (await client.readuntil(b"\r\n\r\n")).decode("ascii")
        host, _, port = asked.split()[1].rpartition(":")
        try:
            outside, forth = await asyncio.open_connection(host, int(port))
        except OSError:
            back.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            back.close()
            return
        self._open.add(forth)
        back.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(self._pass(client, forth), self._pass(outside, back, is_counted=True))

    async def _pass(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_counted: bool = False
    ) -> None:
        try:
            while chunk := await source.read(_CHUNK):
                self.received += len(chunk) * is_counted
                to.write(chunk)
                await to.drain()
        except ConnectionError:
            pass  # Closing the other side, below, tells it.
        finally:
            to.close()
            self._open.discard(to)

    async def hang_up(self, server: asyncio.Server) -> None:
        """Close `server` and all connections; open sockets would cause warnings that fail tests."""
        server.close()
        for writer in self._open:
            writer.close()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*serving, return_exceptions=True), timeout=5)
        await asyncio.sleep(0)  # Transports close in the next iteration of the event loop.


@contextmanager
def counting_proxy() -> Iterator[CountingProxy]:
    """Run a proxy on a free port of this machine until the block ends."""
    proxy, loop = CountingProxy(), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(proxy.serve, "127.0.0.1", 0))
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.hang_up(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
