"""What a moment's visitors have in common is read once."""

from collections.abc import Iterator
from itertools import count

import pytest
from django.core.cache import caches
from pytest_django import Settings

from swarm_web.edge.brief_cache import keep_briefly


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    caches["brief"].clear()
    yield
    caches["brief"].clear()


def test_within_a_moment_the_same_is_told(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    made = count()
    assert [keep_briefly("nodes", lambda: next(made)) for _ in range(3)] == [0, 0, 0]


def test_each_key_has_its_own(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    assert keep_briefly("nodes", lambda: 1) == 1
    assert keep_briefly("rounds", lambda: 2) == 2


def test_nothing_is_kept_where_pages_are_not(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 0.0
    made = count()
    assert [keep_briefly("nodes", lambda: next(made)) for _ in range(3)] == [0, 1, 2]
