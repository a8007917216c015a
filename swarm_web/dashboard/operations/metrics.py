"""The metrics that Prometheus collects, read from the database and Redis at each request."""

from collections.abc import Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from judge.models import Round, Score
from judge.selectors.rounds import answers_to_grade
from swarm_web.core import heartbeat
from swarm_web.core.counters import read_all
from swarm_web.core.store import broker_redis
from swarm_web.nodes.models import Node
from swarm_web.notifications.selectors import count_channels_off, count_deliveries


class SiteCollector(Collector):
    """Reads all metrics from the database and Redis, so every process returns the same values."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now

    def collect(self) -> list[Metric]:
        """Return every metric."""
        return [
            *self._collect_gauges(),
            *self._collect_ages(),
            *_collect_notifications(),
            *_collect_counters(),
        ]

    def _collect_gauges(self) -> list[Metric]:
        connected = Node.objects.connected(now=self._now).count()
        closed = Round.objects.filter(phase=Round.Phase.CLOSED).count()
        ungraded = answers_to_grade().count()
        return [
            GaugeMetricFamily("swarm_nodes_connected", "Nodes with an open socket", connected),
            GaugeMetricFamily("swarm_rounds_closed", "Judge rounds closed", closed),
            GaugeMetricFamily("swarm_scores", "Scores written", Score.objects.count()),
            GaugeMetricFamily(
                "swarm_answers_ungraded", "Answers that wait for a verdict", ungraded
            ),
            GaugeMetricFamily(
                "swarm_queue_length", "Background jobs that wait", broker_redis().llen("celery")
            ),
        ]

    def _collect_ages(self) -> list[Metric]:
        ages = heartbeat.read_ages(now=self._now)
        family = GaugeMetricFamily(
            "swarm_heartbeat_age_seconds", "Since a part's last sign of life", labels=["part"]
        )
        return [_fill(family, {part: age for part, age in ages.items() if age is not None})]


def _collect_notifications() -> list[Metric]:
    family = GaugeMetricFamily(
        "swarm_notifications",
        "Messages to owners of the last 30 days by what became of them",
        labels=["state"],
    )
    off = GaugeMetricFamily(
        "swarm_notification_channels_failing",
        "Channels that were switched off because their receivers failed",
        count_channels_off(),
    )
    return [_fill(family, count_deliveries()), off]


def _collect_counters() -> list[Metric]:
    return [
        _fill(CounterMetricFamily(f"swarm_{name}", f"{name}, by code", labels=["code"]), codes)
        for name, codes in read_all().items()
    ]


def _fill(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]
) -> GaugeMetricFamily | CounterMetricFamily:
    """Add a value for each label to a family, and return the family."""
    for label, value in values.items():
        family.add_metric([label], value)
    return family


def render_metrics(*, now: datetime) -> tuple[bytes, str]:
    """Return all metrics in the text format of Prometheus, and the format's content type.

    Raises an error of the database or of Redis while it is unavailable.
    """
    registry = CollectorRegistry()
    registry.register(SiteCollector(now=now))
    return generate_latest(registry), CONTENT_TYPE_LATEST
