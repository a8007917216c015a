"""Background work on requests for tokens."""

from celery import shared_task
from django.utils import timezone

from swarm_web.joining.services import prune_requests


@shared_task
def prune() -> None:
    """Delete each JoinRequest that expired more than a day ago."""
    prune_requests(now=timezone.now())
