"""Fixtures for all tests, and the cleanup of the database after tests that commit."""

import gc
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache

import pytest
import pytest_asyncio
from django.db import connection, transaction
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker, Settings

from swarm_tasks.verifier import Verifier
from swarm_web.catalogues import compile_stale
from swarm_web.core.store import async_redis, sync_redis
from tests.valkey_cluster import Cluster, valkey_cluster

# Filled by migrations and required by Django.
KEPT_TABLES = {"django_content_type", "auth_permission"}


LONG = ("swarm", "browser", "slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the long tests first, so that parallel workers end at about the same time."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, LONG)))


def pytest_collection_finish() -> None:
    """Exclude existing objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.fixture(scope="session", autouse=True)
def catalogues() -> None:
    """Compile the translations, as make does before it starts a site."""
    compile_stale()


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let a module's fixtures create rows once; each test rolls back to them.

    The transaction of a test is a savepoint in this one, so no test of the module may use
    `transactional_db`, and database access is allowed in all of them. Give each test a copy of the
    objects, because a test may change them.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def committed_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let a module's fixtures commit rows, which are deleted when the module ends.

    Mark the module's tests with `django_db` to allow database access. None of them may use
    `transactional_db`, which empties the tables.
    """
    with django_db_blocker.unblock():
        yield
        delete_all_rows()


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """A real verifier; starting its child takes a second, so all tests use the same one."""
    with Verifier() as running:
        yield running


@pytest.fixture
def redis_away(settings: Settings) -> Iterator[None]:
    """Make Redis refuse the connections of sync code, and of event loops that start later."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    sync_redis.cache_clear()
    yield
    sync_redis.cache_clear()


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of three masters for a module."""
    with valkey_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def in_cluster(valkey: Cluster, settings: Settings) -> AsyncIterator[None]:
    """Let the site use the empty cluster; close the connections of the test's event loop."""
    settings.REDIS_CLUSTER = True
    settings.REDIS_URL = valkey.url
    sync_redis.cache_clear()
    client = sync_redis()
    client.flushall()
    yield
    client.close()
    sync_redis.cache_clear()
    await async_redis().aclose()


@lru_cache
def all_tables() -> list[str]:
    """Return the names of the tables that tests may fill."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [table for table in tables if table not in KEPT_TABLES]


def delete_all_rows(_case: TransactionTestCase | None = None) -> None:
    """Empty the database after tests that committed.

    Django would truncate every table and emit `post_migrate`, which takes far longer and waits for
    all readers. Foreign keys are checked at the end of the transaction, so no order is needed.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("; ".join(f'DELETE FROM "{table}"' for table in all_tables()))


# pytest-django has no setting for this.
TransactionTestCase._fixture_teardown = delete_all_rows  # type: ignore[attr-defined]
