"""The value of a public beacon, from servers that the site did not name."""

from collections.abc import Sequence

import httpx

from swarm_tasks.beacon import MAX_VALUE_BYTES, Beacon, BeaconError, BeaconValue, read_value

HTTP_TIMEOUT_S = 10.0


def fetch_value(beacon: Beacon, *, urls: Sequence[str]) -> BeaconValue | None:
    """Return what the first server says that answers with a value; None if none does."""
    for url in urls:
        try:
            return read_value(_fetch(f"{url.rstrip('/')}/{beacon.path}"), beacon=beacon)
        except (httpx.HTTPError, httpx.InvalidURL, BeaconError):
            continue
    return None


def _fetch(address: str) -> bytes:
    """Return an answer's body. Raises httpx's errors, BeaconError for more than any value has."""
    body = b""
    with httpx.stream("GET", address, timeout=HTTP_TIMEOUT_S) as response:
        response.raise_for_status()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_VALUE_BYTES:
                raise BeaconError(f"more than {MAX_VALUE_BYTES} bytes")
    return body
