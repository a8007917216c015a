"""Measure the download of all rewards: its speed, and the server's memory meanwhile."""

import http.client
import threading
import time
from dataclasses import dataclass

from bench.web.site import BenchServer
from swarm_web.local.probes import HOST

_POLL_S = 0.05


@dataclass(frozen=True)
class Download:
    """Rows per second, the largest growth of the server's memory meanwhile, and the file's size.

    `growth_mb` is in units of 2**20 bytes, `size_mb` in units of 10**6.
    """

    rows_per_s: float
    growth_mb: float
    size_mb: float


def download(server: BenchServer, suffix: str, *, rows: int) -> Download:
    """Download all rewards in the format `suffix`, and measure the download.

    `rows` is the number of rewards. A small file is downloaded first, so that the server has loaded
    the format's libraries.
    """
    _fetch(server, f"/downloads/rewards.{suffix}?round_to=20")
    before, highest = server.rss_mb(), [0.0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_S):
            highest.append(server.rss_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    size = _fetch(server, f"/downloads/rewards.{suffix}")
    took = time.perf_counter() - start
    over.set()
    watcher.join()
    return Download(rows / took, max(highest) - before, size / 1e6)


def _fetch(server: BenchServer, path: str) -> int:
    """Download a file and return its length in bytes."""
    connection = http.client.HTTPConnection(HOST, server.port)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, f"{path}: {answer.status}"
    size = 0
    while part := answer.read(1 << 20):
        size += len(part)
    connection.close()
    return size
