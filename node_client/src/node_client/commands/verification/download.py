"""Downloads of a site's public records, all with size limits.

All functions raise UncheckableError when a record is missing, too large or cannot be downloaded.
"""

from collections.abc import Iterable, Iterator
from typing import IO

import httpx

from node_client.commands.verification.records import (
    PublishedAnswer,
    PublishedAsked,
    read_answer,
    read_asked,
)
from node_client.errors import UncheckableError
from node_client.site import Site

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
    """The site has no such page."""


def fetch_round(site: Site, number: int) -> bytes:
    """Return a round's record, as JSON. Raises UncheckableError."""
    address = site.round_record(number)
    return b"".join(_stream(address, max_bytes=MAX_RECORD_BYTES))


def fetch_answers(site: Site, number: int, *, into: IO[bytes]) -> int:
    """Write a round's answers to a file and return the number of lines. Raises UncheckableError."""
    address = site.round_answers(number)
    return _save(_stream(address, max_bytes=MAX_ANSWERS_BYTES), into)


def fetch_asked(site: Site, number: int, *, into: IO[bytes]) -> int:
    """Write what the season asked before a round to a file, and return the number of lines.

    Each line is an earlier round. Raises UncheckableError.
    """
    address = site.round_asked(number)
    return _save(_stream(address, max_bytes=MAX_ASKED_BYTES), into)


def fetch_chain(site: Site) -> list[bytes] | None:
    """Return the lines of a site's chain; None if it has none. Raises UncheckableError."""
    try:
        lines = b"".join(_stream(site.chain, max_bytes=MAX_CHAIN_BYTES)).splitlines()
    except MissingError:
        return None
    return lines


def fetch_results(site: Site, number: int) -> list[bytes]:
    """Return the lines of a closed round's results. Raises UncheckableError."""
    address = site.round_results(number)
    return b"".join(_stream(address, max_bytes=MAX_RECORD_BYTES)).splitlines()


def fetch_json(address: str) -> bytes:
    """Return the JSON at an address of the site's API. Raises UncheckableError."""
    return b"".join(_stream(address, max_bytes=MAX_RECORD_BYTES))


def read_answers(file: IO[bytes]) -> Iterator[PublishedAnswer]:
    """Yield the answers in a file of `fetch_answers`, from the current position on.

    Raises UncheckableError for a line that is too long or unreadable.
    """
    return map(read_answer, _read_lines(file))


def read_earlier(file: IO[bytes]) -> Iterator[PublishedAsked]:
    """Yield the earlier rounds in a file of `fetch_asked`, from the current position on.

    Raises UncheckableError for a line that is too long or unreadable.
    """
    return map(read_asked, _read_lines(file))


def _read_lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise UncheckableError(
                f"The site published a line of more than {MAX_LINE_BYTES:,} bytes.",
                fix="Report this to the operator: a coordinator accepts no such answer.",
            )
        yield line


def _save(chunks: Iterable[bytes], into: IO[bytes]) -> int:
    """Write chunks to a file and return the number of lines. Raises UncheckableError."""
    lines = 0
    for chunk in chunks:
        _write(chunk, into)
        lines += chunk.count(b"\n")
    return lines


def _write(chunk: bytes, into: IO[bytes]) -> None:
    try:
        into.write(chunk)
    except OSError as problem:
        raise UncheckableError(
            f"The round's record cannot be saved: {problem.strerror or problem}.",
            fix="Free some space in the folder of temporary files, or name another with TMPDIR.",
        ) from problem


def _stream(address: str, *, max_bytes: int) -> Iterator[bytes]:
    """Yield a response body in chunks.

    Raises UncheckableError (MissingError for HTTP status 404), also above `max_bytes` bytes.
    """
    size = 0
    try:
        with httpx.stream("GET", address, timeout=HTTP_TIMEOUT_S) as response:
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
