"""Test the log output while a store is unavailable."""

import logging
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from swarm_web.core.log_filters import OutageFilter
from tests.logs import Clock, Written, logger_writing_to


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written(clock: Clock) -> Written:
    handler = Written()
    handler.addFilter(OutageFilter(interval_s=5.0, clock=clock))
    return handler


@pytest.fixture
def logger(written: Written) -> Iterator[logging.Logger]:
    with logger_writing_to(written) as log:
        yield log


def log_exception(logger: logging.Logger, problem: Exception) -> None:
    """Log an exception as the code at an edge does, always from the same line."""
    try:
        raise problem
    except type(problem):
        logger.exception("a handler failed")


def test_error_of_an_unavailable_store_is_logged_in_one_line(
    logger: logging.Logger, written: Written
) -> None:
    log_exception(logger, OperationalError("connection refused\n\tIs the server running?"))
    assert written.lines == ["a handler failed: connection refused"]


def test_other_errors_are_logged_with_a_traceback(logger: logging.Logger, written: Written) -> None:
    log_exception(logger, ValueError("a bug"))
    log_exception(logger, ValueError("a bug"))
    assert [line.count("Traceback") for line in written.lines] == [1, 1]


def test_repeated_error_is_logged_again_after_an_interval_with_a_count(
    logger: logging.Logger, written: Written, clock: Clock
) -> None:
    for seconds in (0.0, 1.0, 1.0, 3.0):
        clock.now += seconds
        log_exception(logger, OperationalError("away"))
    assert written.lines == ["a handler failed: away", "a handler failed: away (and 2 times more)"]


def test_errors_of_different_places_are_logged_independently(
    logger: logging.Logger, written: Written
) -> None:
    log_exception(logger, OperationalError("away"))
    try:
        raise OperationalError("away")
    except OperationalError:
        logger.warning("could not ring", exc_info=True)
    assert written.lines == ["a handler failed: away", "could not ring: away"]
