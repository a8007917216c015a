"""Test the context processor of all templates."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from django.core.cache import caches
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

from judge.models import Season
from swarm_web.dashboard.context import describe_site
from swarm_web.dashboard.reports.home import Pill
from tests.factories import make_node


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    caches["brief"].clear()
    yield
    caches["brief"].clear()


def read_pill() -> Pill:
    pill = describe_site(RequestFactory().get("/"))["pill"]
    assert isinstance(pill, Pill)
    return pill


def test_cached_pill_has_the_current_time(season: Season, settings: Settings) -> None:
    settings.PAGE_CACHE_SECONDS = 60.0
    assert read_pill().connected == 0
    make_node("amber", last_seen=timezone.now())
    before: datetime = timezone.now()
    pill = read_pill()
    assert (pill.connected, pill.now >= before) == (0, True)
