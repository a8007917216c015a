"""Test the brief cache of data that pages have in common."""

from collections.abc import Iterator
from itertools import count

import pytest
from django.core.cache import caches
from pytest_django import Settings

from swarm_web.edge.brief_cache import SiteState, keep_briefly, site_state


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    caches["brief"].clear()
    yield
    caches["brief"].clear()


def test_value_is_cached(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    made = count()
    assert [keep_briefly("nodes", lambda: next(made)) for _ in range(3)] == [0, 0, 0]


def test_each_key_has_its_own_value(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    assert keep_briefly("nodes", lambda: 1) == 1
    assert keep_briefly("rounds", lambda: 2) == 2


def test_cache_is_disabled_without_page_cache(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 0.0
    made = count()
    assert [keep_briefly("nodes", lambda: next(made)) for _ in range(3)] == [0, 1, 2]


def test_value_is_computed_again_after_a_change_of_the_state(settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    site_state.renew(lambda: "before")
    made = count()
    assert keep_briefly("nodes", lambda: next(made)) == 0
    site_state.renew(lambda: "after")
    assert keep_briefly("nodes", lambda: next(made)) == 1


def test_state_is_read_again_after_its_maximum_age() -> None:
    now = 0.0
    state = SiteState(clock=lambda: now)
    tokens = iter("ab")
    assert [state.recall(lambda: next(tokens), max_age_s=1) for _ in range(2)] == ["a", "a"]
    now = 1.0
    assert state.recall(lambda: next(tokens), max_age_s=1) == "b"


def test_last_state_is_used_while_another_thread_reads_it() -> None:
    state = SiteState()
    state.renew(lambda: "known")

    def read() -> str:
        assert state.recall(lambda: "unused", max_age_s=0) == "known"
        return "new"

    assert state.renew(read) == "new"


def test_last_state_is_preserved_if_reading_fails() -> None:
    state = SiteState()
    state.renew(lambda: "known")
    with pytest.raises(StopIteration):
        state.renew(lambda: next(iter("")))
    assert state.token == "known"
