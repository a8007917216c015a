"""The Celery app: rounds tick, answers are scored and lost work is found again.

Start a worker with `celery -A swarm_web worker` and one beat with `celery -A swarm_web beat`.
"""

import os

from celery import Celery
from celery.signals import heartbeat_sent
from django.utils import timezone

from swarm_web import heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "swarm_web.settings")

app = Celery("swarm_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@heartbeat_sent.connect
def stamp_worker(**_signal: object) -> None:
    """Leave a sign of life that /readyz and /status/ read."""
    heartbeat.stamp(heartbeat.Part.WORKER, now=timezone.now())
