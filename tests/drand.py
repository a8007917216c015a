"""A small beacon on a real socket, whose values are derived from the number of their round."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import msgspec

from swarm_tasks.beacon import QUICKNET, BeaconValue

# The server's response for the number of a round; None hangs until the server is closed.
Answer = Callable[[int], bytes | None]
# A port on which no process listens.
NOBODY = "http://127.0.0.1:9"


def value_of(number: int, *, by: str = "toy") -> BeaconValue:
    """Return a consistent value for a round; it is not signed by the real beacon."""
    signature = hashlib.sha384(f"{by} {number}".encode()).digest()
    return BeaconValue(number, hashlib.sha256(signature).hexdigest(), signature.hex())


def honest(number: int) -> bytes:
    """Respond like drand."""
    return msgspec.json.encode(value_of(number))


def hang(_number: int) -> None:
    """Accept the request and send no response."""


class Drand:
    """The server: `answer` may be replaced, and `asked` contains the requested rounds."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, list[int]()
        self.closed = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def running(answer: Answer = honest) -> Iterator[Drand]:
    """Run a server until the block ends."""
    server = Drand(answer)
    try:
        yield server
    finally:
        server.close()


def _handler_of(server: Drand) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            chain, public, number = self.path.strip("/").split("/")
            if (chain, public) != (QUICKNET, "public"):
                self.send_error(404, json.dumps({"error": "unknown chain"}))
                return
            server.asked.append(int(number))
            body = server.answer(int(number))
            if body is None:
                server.closed.wait()
                return
            self.send_response(200 if body else 425)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log."""

    return Handler
