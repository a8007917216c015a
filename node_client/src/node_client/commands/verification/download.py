"""Downloads of public records, all with size limits.

Functions raise UncheckableError when a record is missing, too large or cannot be downloaded.
"""

from collections.abc import Iterator
from typing import IO

import httpx

from node_client.errors import UncheckableError

HTTP_TIMEOUT_S = 30.0
# About 100,000 nodes' scores, and 10,000 nodes' answers to 16 questions, at maximum length.
MAX_RECORD_BYTES = 64 << 20
MAX_ANSWERS_BYTES = 4 << 30
# About two million links: years of rounds.
MAX_CHAIN_BYTES = 1 << 30
# A year of rounds of 256 questions, one every five minutes, takes less.
MAX_ASKED_BYTES = 1 << 29
# In JSON each character of an answer may be two escapes of six bytes.
MAX_LINE_BYTES = 1 << 18


class MissingError(UncheckableError):
    """The site has no page at the requested address."""


def fetch(address: str, *, max_bytes: int, timeout_s: float = HTTP_TIMEOUT_S) -> bytes:
    """Return the content at an address.

    Raises UncheckableError if it cannot be read or is larger than `max_bytes`.
    """
    return b"".join(_stream(address, max_bytes=max_bytes, timeout_s=timeout_s))


def fetch_record(address: str) -> bytes:
    """Return a record of the site: a round, a round's results, or a page of a list.

    Raises UncheckableError if it cannot be read or is larger than MAX_RECORD_BYTES.
    """
    return fetch(address, max_bytes=MAX_RECORD_BYTES)


def save(address: str, *, into: IO[bytes], max_bytes: int) -> int:
    """Write the content at an address to the file `into`, and return its number of line breaks.

    Raises UncheckableError if it cannot be read or saved, or is larger than `max_bytes`.
    """
    lines = 0
    for chunk in _stream(address, max_bytes=max_bytes, timeout_s=HTTP_TIMEOUT_S):
        try:
            into.write(chunk)
        except OSError as problem:
            raise UncheckableError(
                f"The round's record cannot be saved: {problem.strerror or problem}.",
                fix="Free some space in the folder of temporary files, or name another with"
                " TMPDIR.",
            ) from problem
        lines += chunk.count(b"\n")
    return lines


def read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file from its current position on.

    Raises UncheckableError for a line of more than MAX_LINE_BYTES bytes.
    """
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise UncheckableError(
                f"The site published a line of more than {MAX_LINE_BYTES:,} bytes.",
                fix="Report this to the operator: a coordinator accepts no such answer.",
            )
        yield line


def _stream(address: str, *, max_bytes: int, timeout_s: float) -> Iterator[bytes]:
    """Yield a response body in chunks.

    Raises MissingError for HTTP status 404, and UncheckableError for any other failure or a body of
    more than `max_bytes` bytes.
    """
    size = 0
    try:
        with httpx.stream("GET", address, timeout=timeout_s) as response:
            if response.status_code == httpx.codes.NOT_FOUND:
                raise MissingError(
                    f"{address} does not exist.",
                    fix="Check the round's number: the site's rounds are on its page /rounds/.",
                )
            response.raise_for_status()
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > max_bytes:
                    raise UncheckableError(
                        f"{address} is larger than {max_bytes:,} bytes.",
                        fix="Report this to the operator: no round is that large.",
                    )
                yield chunk
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise UncheckableError(
            f"{address} cannot be read: {problem or type(problem).__name__}",
            fix="Check the address and the network, for example with `swarm-node doctor URL`.",
        ) from problem
