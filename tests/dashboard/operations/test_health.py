"""Test health checks, metrics and the status page."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoDbBlocker, Settings

from judge.models import Answer, Round, Season
from judge.services.seasons import halt_season
from judge.tasks import tick_rounds
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_web.core import heartbeat
from swarm_web.core.heartbeat import SitePart
from swarm_web.core.store import broker_redis, sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.keys import season_key
from tests.factories import make_answer, make_node, make_round


@pytest.fixture(autouse=True)
def no_heartbeats() -> None:
    sync_redis().delete(*[heartbeat._key(part) for part in SitePart])


def test_healthz_returns_ok(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_site_is_not_ready_without_a_worker(db: None, client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() | {"ready": False, "worker_age_s": None} == answer.json()


def test_site_is_not_ready_if_the_heartbeat_of_the_worker_is_old(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now() - timedelta(minutes=1))
    assert client.get("/readyz").status_code == 503


def test_site_is_ready_if_all_parts_work(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now())
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["worker_age_s"] < 5


def unapply_newest_migration() -> None:
    [newest] = MigrationLoader(None).graph.leaf_nodes("nodes")
    MigrationRecorder(connection).record_unapplied(*newest)


def test_site_is_not_ready_while_a_migration_is_missing(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now())
    unapply_newest_migration()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["schema"]) == (503, False)


def test_site_is_not_ready_if_a_table_has_no_primary_key(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE nodes_node DROP CONSTRAINT nodes_node_pkey CASCADE")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["schema"]) == (503, False)


def test_site_is_not_ready_on_an_empty_database(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA empty; SET LOCAL search_path TO empty")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["schema"]) == (503, False)


def test_readyz_takes_at_most_three_queries(db: None, client: Client) -> None:
    client.get("/readyz")
    with CaptureQueriesContext(connection) as queries:
        client.get("/readyz")
    assert len([query for query in queries if query["sql"] != "SELECT 1"]) <= 3


def test_status_page_reports_a_schema_of_another_version(db: None, client: Client) -> None:
    unapply_newest_migration()
    assert (
        "The database schema does not match this version" in client.get("/status/").content.decode()
    )


def test_status_page_reports_a_missing_table(db: None, client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE judge_answer RENAME TO other")
    answer = client.get("/status/")
    assert answer.status_code == 200
    assert "The database schema does not match this version" in answer.content.decode()


def test_tick_of_the_rounds_is_a_heartbeat_of_the_clock(db: None) -> None:
    tick_rounds()
    assert heartbeat.is_alive(heartbeat.read_ages(now=timezone.now())[SitePart.CLOCK])


def test_status_page_names_the_part_without_a_heartbeat(db: None, client: Client) -> None:
    heartbeat.stamp(SitePart.WORKER, now=timezone.now())
    html = client.get("/status/").content.decode()
    assert "rounds are not advancing" in html
    assert "It has not run yet." in html


@pytest.fixture
def unreachable_database(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make the database refuse connections."""
    here = connections["default"]
    connections["default"] = away = here.copy()
    away.settings_dict |= {"HOST": "127.0.0.1", "PORT": 1}
    # A pool of connections, if there is one, belongs to the alias.
    away.alias = "away"
    with django_db_blocker.unblock():
        yield
        assert isinstance(away, DatabaseWrapper)
        away.close_pool()
    connections["default"] = here


@pytest.mark.usefixtures("unreachable_database")
def test_status_page_reports_an_unreachable_database(client: Client) -> None:
    answer = client.get("/status/")
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "Some systems are down" in html
    assert "without it, no page but this one works" in html


@pytest.fixture
def unreachable_broker(settings: Settings) -> Iterator[None]:
    """Make the server of Celery's queue refuse connections; the site's Redis still works."""
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    broker_redis.cache_clear()
    yield
    broker_redis.cache_clear()


@pytest.mark.usefixtures("unreachable_broker")
def test_status_page_is_shown_while_the_broker_is_unreachable(db: None, client: Client) -> None:
    answer = client.get("/status/")
    assert (answer.status_code, answer.context["queue"]) == (200, None)


def test_status_page_shows_why_a_season_opens_no_more_rounds(
    season: Season, client: Client
) -> None:
    assert "no new rounds" not in client.get("/status/").content.decode()
    refusal = RefusedError(ErrorCode.TASK_EXHAUSTED, "gcd has too few questions left")
    assert halt_season(season, refusal)
    page = client.get("/status/").content.decode()
    assert "no new rounds" in page
    assert "task.exhausted: gcd has too few questions left. Start another season" in page


def test_only_answers_that_will_be_graded_are_counted_as_ungraded(
    season: Season, client: Client
) -> None:
    node, _ = make_node()
    for phase in (Round.Phase.OPEN, Round.Phase.SCORING, Round.Phase.CLOSED, Round.Phase.VOID):
        for question in make_round(season, phase=phase, questions=1).questions.all():
            make_answer(question, node, solved=True)
    Answer.objects.update(score=None, solved=None, verdict="")
    assert client.get("/status/").context["ungraded"] == 2
    assert "swarm_answers_ungraded 2.0" in client.get("/metrics").content.decode()


def test_status_page_shows_the_size_of_the_pool(season: Season, client: Client) -> None:
    sync_redis().set(season_key(season.pk, "held"), 2)
    pool = client.get("/status/").context["pool"]
    sync_redis().delete(season_key(season.pk, "held"))
    assert pool == 2


def test_metrics_count_connected_nodes_and_scores(judged: list[Node], client: Client) -> None:
    text = client.get("/metrics").content.decode()
    assert "swarm_nodes_connected 3.0" in text
    assert "swarm_scores 6.0" in text


def test_metrics_contain_the_counters_of_refusals(db: None, client: Client) -> None:
    sync_redis().hset("counters", "refused/answer.late", 5)
    text = client.get("/metrics").content.decode()
    sync_redis().delete("counters")
    assert 'swarm_refused_total{code="answer.late"} 5.0' in text
