"""Visitors of the benchmark: threads that request pages, each over its own connection."""

import http.client
import random
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from swarm_web.local.probes import HOST

VISITORS = 20
_PAUSE_S = 1.0
_STATIC = re.compile(r'(?:src|href)="(/static/[^"]+)"|data-figure="([^"]+)"')


def fetch(
    connection: http.client.HTTPConnection, path: str, *, encodings: str = "gzip, br"
) -> bytes:
    """Return a page's body as it is sent. Raises AssertionError unless its status is 200."""
    connection.request("GET", path, headers={"Accept-Encoding": encodings})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, f"{path}: {answer.status}"
    return body


def visit(port: int, draw: Callable[[random.Random], str], *, seconds: float) -> list[float]:
    """Let VISITORS visitors load a page per second each; return the milliseconds of every page.

    `draw` returns the path of a page.
    """

    def look(seed: int) -> list[float]:
        choice, taken = random.Random(seed), []
        connection = http.client.HTTPConnection(HOST, port)
        time.sleep(choice.random() * _PAUSE_S)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            start = time.perf_counter()
            fetch(connection, draw(choice))
            taken.append(1000 * (time.perf_counter() - start))
            time.sleep(max(0.0, _PAUSE_S - taken[-1] / 1000))
        connection.close()
        return taken

    with ThreadPoolExecutor(VISITORS) as pool:
        return [took for own in pool.map(look, range(VISITORS)) for took in own]


def measure_throughput(port: int, path: str, *, visitors: int, seconds: float) -> float:
    """Let visitors request one page again and again without a pause; return pages per second."""

    def look(_: int) -> int:
        connection, count = http.client.HTTPConnection(HOST, port), 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            fetch(connection, path)
            count += 1
        connection.close()
        return count

    with ThreadPoolExecutor(visitors) as pool:
        return sum(pool.map(look, range(visitors))) / seconds


def measure_size(port: int, path: str) -> tuple[float, float]:
    """Return the kB sent for a first view of a page, and for a view with static files cached."""
    connection = http.client.HTTPConnection(HOST, port)
    body = fetch(connection, path)
    text = fetch(connection, path, encodings="identity").decode()
    found = {one or other for one, other in _STATIC.findall(text)}
    figures = {url.replace("&amp;", "&") for url in found if not url.startswith("/static/")}
    page = len(body) + sum(len(fetch(connection, url)) for url in figures)
    files = sum(len(fetch(connection, url)) for url in found if url.startswith("/static/"))
    connection.close()
    return (page + files) / 1000, page / 1000


def percentile(taken: Sequence[float], share: float) -> float:
    """Return a percentile of the times `taken`: the median for a `share` of 50."""
    return float(np.percentile(taken, share))
