"""Background work on accounts."""

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone


@shared_task
def prune_sessions() -> None:
    """Delete sessions that have expired."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
