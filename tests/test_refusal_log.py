"""Test the log lines of rejected requests, whose number clients determine."""

import logging
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from swarm_web.core.log_filters import RefusalFilter
from tests.logs import Clock, Written, logger_writing_to
from tests.web import serving

HERE = "Host: 127.0.0.1\r\n"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
UPGRADE += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
REFUSED = {
    "GET / HTTP/1.1\r\nHost: elsewhere.example\r\n": 400,
    f"GET /?{'a=b&' * 1001} HTTP/1.1\r\n{HERE}": 400,
    f"POST /admin/login/ HTTP/1.1\r\n{HERE}Content-Length: 0\r\n": 403,
    f"POST /api/v1/rounds HTTP/1.1\r\n{HERE}Content-Length: 0\r\n": 405,
    f"no request\r\n{HERE}": 400,
    f"GET /ws/node/ HTTP/1.1\r\n{HERE}{UPGRADE}": 401,
    f"GET /ws/nothing/ HTTP/1.1\r\n{HERE}{UPGRADE}": 404,
    f"GET /ws/live/ HTTP/1.1\r\n{HERE}{UPGRADE}Origin: http://[\r\n": 403,
}


def send(site: str, request: str) -> int:
    """Send a raw request and return the status of the response."""
    url = urlsplit(site)
    with socket.create_connection((url.hostname, url.port), timeout=30) as connection:
        connection.sendall(f"{request}\r\n".encode())
        return int(connection.recv(4096).split()[1])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_rejected_requests_are_logged_in_few_lines_and_not_as_errors() -> None:
    log: list[str] = []
    with serving(log, DEBUG="false", HTTPS="false", ALLOWED_HOSTS="127.0.0.1") as site:
        for _ in range(3):
            assert {request: send(site, request) for request in REFUSED} == REFUSED
    assert len(log) < 2 * len(REFUSED)
    assert [line for line in log if not line.startswith("INFO ")] == []
    assert any("elsewhere.example" in line and "ALLOWED_HOSTS" in line for line in log)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written(clock: Clock) -> Written:
    handler = Written()
    handler.addFilter(RefusalFilter(interval_s=5.0, clock=clock))
    return handler


@pytest.fixture
def logger(written: Written) -> Iterator[logging.Logger]:
    with logger_writing_to(written) as log:
        yield log


def log_response(logger: logging.Logger, problem: Exception, *, status: int) -> None:
    """Log the response to a request as Django does, always from the same line."""
    try:
        raise problem
    except type(problem):
        logger.exception("%s", problem, extra={"status_code": status})


def test_rejection_is_logged_in_one_line(logger: logging.Logger, written: Written) -> None:
    log_response(logger, ValueError("a strange host\nwith two lines"), status=400)
    assert written.lines == ["a strange host"]


def test_rejection_is_logged_at_level_info(logger: logging.Logger, written: Written) -> None:
    written.setFormatter(logging.Formatter("%(levelname)s"))
    log_response(logger, ValueError("a strange host"), status=400)
    assert written.lines == ["INFO"]


def test_long_message_is_truncated(logger: logging.Logger, written: Written) -> None:
    log_response(logger, ValueError("x" * 60_000), status=404)
    assert len(written.lines[0]) < 300


def test_repeated_rejections_are_logged_at_intervals_with_a_count(
    logger: logging.Logger, written: Written, clock: Clock
) -> None:
    for seconds in (0.0, 1.0, 1.0, 3.0):
        clock.now += seconds
        log_response(logger, ValueError("not found"), status=404)
    assert written.lines == ["not found", "not found (and 2 times more)"]


def test_server_error_is_logged_with_a_traceback(logger: logging.Logger, written: Written) -> None:
    written.setFormatter(logging.Formatter("%(levelname)s"))
    log_response(logger, ValueError("a bug"), status=500)
    assert written.lines[0].startswith("ERROR\nTraceback")


@pytest.fixture
def root_level_warning() -> Iterator[None]:
    level = logging.root.level
    logging.root.setLevel(logging.WARNING)
    yield
    logging.root.setLevel(level)


@pytest.mark.usefixtures("root_level_warning")
def test_rejections_are_not_logged_at_level_warning(
    logger: logging.Logger, written: Written
) -> None:
    log_response(logger, ValueError("not found"), status=404)
    assert written.lines == []
