"""Views that show the site's health to load balancers, to Prometheus and, in words, to people."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import redis.exceptions
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from judge.models import Round
from judge.selectors.rounds import answers_to_grade
from judge.selectors.seasons import running_season
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_web.core import heartbeat
from swarm_web.core.counters import read_all
from swarm_web.core.heartbeat import SitePart
from swarm_web.core.store import broker_redis, sync_redis
from swarm_web.dashboard.operations.metrics import render_metrics
from swarm_web.dashboard.operations.schema import schema_fits
from swarm_web.dashboard.reports.conduct import read_hand_outs
from swarm_web.maintenance.selectors import current_maintenance
from swarm_web.nodes.models import Node
from swarm_web.relay.selectors.pooled import pool_size

# Values that every page shows, and that cannot be read while the database is down or lacks tables.
_WITHOUT_DATABASE = {"pill": None, "maintenance": None, "chain_link": None}


@dataclass(frozen=True)
class Probe:
    """Whether Redis or the database answered, and after how many ms (0 if it did not answer)."""

    ok: bool
    ms: float


@dataclass(frozen=True)
class SiteVitals:
    """The state of the database, of Redis, and of the parts of the site that send heartbeats.

    `ages` has the seconds since the last heartbeat of each SitePart; None if the part never sent
    one, or while Redis is unavailable.
    """

    database: Probe
    schema_fits: bool
    redis: Probe
    ages: dict[SitePart, float | None]

    @property
    def worker_alive(self) -> bool:
        """Whether the worker's heartbeat is recent (`heartbeat.is_alive`)."""
        return heartbeat.is_alive(self.ages[SitePart.WORKER])

    @property
    def clock_alive(self) -> bool:
        """Whether the heartbeat of the ticks, which move rounds to their next phase, is recent."""
        return heartbeat.is_alive(self.ages[SitePart.CLOCK])

    @property
    def ready(self) -> bool:
        """Whether the site can serve nodes and visitors.

        This requires a database with the right tables, Redis, and a recent heartbeat of the worker.
        """
        return self.schema_fits and self.redis.ok and self.worker_alive


def read_vitals(*, now: datetime) -> SiteVitals:
    """Probe all parts. A part that is down raises no error; the result says so."""
    database = _probe(_query_database, (DatabaseError, InterfaceError))
    store = _probe(lambda: sync_redis().ping(), (redis.exceptions.RedisError,))
    ages: dict[SitePart, float | None] = dict.fromkeys(SitePart)
    if store.ok:
        ages = heartbeat.read_ages(now=now)
    return SiteVitals(
        database=database, schema_fits=database.ok and schema_fits(), redis=store, ages=ages
    )


def _query_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _probe(check: Callable[[], object], failures: tuple[type[Exception], ...]) -> Probe:
    start = time.perf_counter()
    try:
        check()
    except failures:
        return Probe(ok=False, ms=0)
    return Probe(ok=True, ms=1000 * (time.perf_counter() - start))


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Return 200, which shows that this process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Return 200 if the site is ready (`SiteVitals.ready`), otherwise 503; both with details."""
    now = timezone.now()
    vitals = read_vitals(now=now)
    maintenance = current_maintenance(now=now) if vitals.schema_fits else None
    body = {
        "ready": vitals.ready,
        "database": vitals.database.ok,
        "schema": vitals.schema_fits,
        "redis": vitals.redis.ok,
        "worker_age_s": vitals.ages[SitePart.WORKER],
        "clock_age_s": vitals.ages[SitePart.CLOCK],
        # Not an error: pages are served, and nodes are refused on purpose.
        "maintenance": maintenance is not None,
    }
    return JsonResponse(body, status=200 if vitals.ready else 503)


@require_safe
def metrics(_request: HttpRequest) -> HttpResponse:
    """Return the site's metrics in the format of Prometheus."""
    body, content_type = render_metrics(now=timezone.now())
    return HttpResponse(body, content_type=content_type)


@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """Show the status page: the state of all parts in words."""
    vitals = read_vitals(now=timezone.now())
    context = {
        "vitals": vitals,
        "worker_age": vitals.ages[SitePart.WORKER],
        "clock_age": vitals.ages[SitePart.CLOCK],
        "version": CLIENT_VERSION,
        "protocol": PROTOCOL_VERSION,
        "pool_limit": settings.RELAY_POOL_SIZE,
        **(_read_database() if vitals.schema_fits else _WITHOUT_DATABASE),
        **(_read_queues() if vitals.redis.ok else {}),
    }
    if vitals.schema_fits and vitals.redis.ok:
        context["pool"] = _read_pool()
    return render(request, "status.html", context)


def _read_database() -> dict[str, object]:
    """Return the values that the template `status.html` shows from the database, by name.

    One of them, `halted`, is the running season if the judge halted it, otherwise None.
    """
    season = running_season()
    return {
        "halted": season if season and season.halt_reason else None,
        "ungraded": answers_to_grade().count(),
        "last_closed": Round.objects.filter(phase=Round.Phase.CLOSED).first(),
        "nodes": Node.objects.count(),
        "hand_outs": read_hand_outs(season.pk) if season else None,
    }


def _read_queues() -> dict[str, object]:
    """Return the values that the template `status.html` shows from Redis, by name.

    `queue` is the number of waiting background jobs, or None if Celery's broker is unavailable.
    `counters` is a list of tuples (counter, code, count).
    """
    counters = [(name, *counted) for name, codes in read_all().items() for counted in codes.items()]
    try:
        queue = broker_redis().llen("celery")
    except redis.exceptions.RedisError:
        # The broker may be another server than the one that answered.
        queue = None
    return {"queue": queue, "counters": counters}


def _read_pool() -> int:
    """Return the number of rollouts in the running season's pool; 0 if no season is running."""
    season = running_season()
    return pool_size(season.pk) if season else 0
