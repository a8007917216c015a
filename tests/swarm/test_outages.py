"""What the logs say while a store is away."""

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


def tell(logger: logging.Logger, problem: Exception) -> None:
    """Log a problem as an edge does, always from this same line."""
    try:
        raise problem
    except type(problem):
        logger.exception("a handler failed")


def test_a_store_that_is_away_is_told_in_one_line(logger: logging.Logger, written: Written) -> None:
    tell(logger, OperationalError("connection refused\n\tIs the server running?"))
    assert written.lines == ["a handler failed: connection refused"]


def test_every_other_error_keeps_its_traceback(logger: logging.Logger, written: Written) -> None:
    tell(logger, ValueError("a bug"))
    tell(logger, ValueError("a bug"))
    assert [line.count("Traceback") for line in written.lines] == [1, 1]


def test_the_same_place_is_heard_again_after_a_while_with_a_count(
    logger: logging.Logger, written: Written, clock: Clock
) -> None:
    for seconds in (0.0, 1.0, 1.0, 3.0):
        clock.now += seconds
        tell(logger, OperationalError("away"))
    assert written.lines == ["a handler failed: away", "a handler failed: away (and 2 times more)"]


def test_different_places_do_not_silence_each_other(
    logger: logging.Logger, written: Written
) -> None:
    tell(logger, OperationalError("away"))
    try:
        raise OperationalError("away")
    except OperationalError:
        logger.warning("could not ring", exc_info=True)
    assert written.lines == ["a handler failed: away", "could not ring: away"]
