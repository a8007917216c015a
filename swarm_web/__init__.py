"""The site: its settings, its ASGI and Celery applications, its URLs, and its Django apps."""

from swarm_web.celery import app as celery_app

__all__ = ["celery_app"]
