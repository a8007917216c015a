"""Fetches values of the public beacon from the drand servers in the setting BEACON_URLS.

All servers are queried at once and the first valid answer is used, so a server that hangs causes no
delay. Each query runs in its own thread, and the caller waits for TIMEOUT_S at most. A server whose
earlier thread has not ended is skipped, so threads do not accumulate.
"""

import logging
from collections.abc import Sequence
from http.client import HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from urllib.request import Request, urlopen

from django.conf import settings

from swarm_tasks.beacon import MAX_VALUE_BYTES, Beacon, BeaconError, BeaconValue, read_value

TIMEOUT_S = 2.0
# A thread's timeout for each read is longer than the wait for the thread by this factor.
_THREAD_TIMEOUT_FACTOR = 2

logger = logging.getLogger(__name__)

Answer = BeaconValue | str

# The addresses of servers whose threads have not ended.
_hanging: set[str] = set()


def fetch_beacon(beacon: Beacon) -> BeaconValue | None:
    """Return the value of a beacon; if no server returns it, log why and return None."""
    urls = [url.rstrip("/") for url in settings.BEACON_URLS]
    answers = SimpleQueue[Answer]()
    for url in urls:
        if url in _hanging:
            answers.put(f"{url}: still hangs from before")
        else:
            Thread(target=_query, args=(url, beacon, answers), daemon=True).start()
    return _take_first(answers, urls)


def _take_first(answers: SimpleQueue[Answer], urls: Sequence[str]) -> BeaconValue | None:
    until = monotonic() + TIMEOUT_S
    problems: list[str] = []
    for _ in urls:
        try:
            answer = answers.get(timeout=max(0.0, until - monotonic()))
        except Empty:
            problems.append(f"nothing within {TIMEOUT_S:g} s")
            break
        if isinstance(answer, BeaconValue):
            return answer
        problems.append(answer)
    logger.warning("no value of the public beacon: %s", "; ".join(problems) or "no servers are set")
    return None


def _query(url: str, beacon: Beacon, answers: SimpleQueue[Answer]) -> None:
    """Put a server's answer into the queue: the value or an error message."""
    _hanging.add(url)
    try:
        answer = _fetch(f"{url}/{beacon.path}", beacon)
    finally:
        _hanging.discard(url)
    answers.put(answer)


def _fetch(address: str, beacon: Beacon) -> Answer:
    try:
        # The address comes from the operator's settings.
        with urlopen(Request(address), timeout=_THREAD_TIMEOUT_FACTOR * TIMEOUT_S) as response:
            raw = response.read(MAX_VALUE_BYTES)
        return read_value(raw, beacon=beacon)
    except (OSError, HTTPException, ValueError, BeaconError) as problem:
        return f"{address}: {problem or type(problem).__name__}"
