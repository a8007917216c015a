"""A real HTTP receiver on a loopback port that records requests and sends configured responses."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue


@dataclass(frozen=True)
class Got:
    """A request: its path, its headers by lower-case names, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Its port, the recorded requests, and the next response."""

    port: int
    got: SimpleQueue[Got] = field(default_factory=SimpleQueue)
    status: int = 204
    location: str = ""

    @property
    def url(self) -> str:
        """The URL of a webhook on this receiver."""
        return f"http://127.0.0.1:{self.port}/hook"

    def take(self) -> Got:
        """Return the next request. Raises queue.Empty after 5 s."""
        return self.got.get(timeout=5)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.put(Got(self.path, headers, body))
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
